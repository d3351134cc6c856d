"""The meaning of expressions, seen from Friday, 2026-11-20, 15:30 UTC: one line each."""

import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from mimo import when
from mimo.errors import Invalid
from mimo.when import Interval
from tests.conftest import NOW

# expression | since | until; … is an open end, `now` the second after it, `end` the last day.
MEANT = """
now | 2026-11-20T15:30 | now
today | 2026-11-20 | now
Yesterday | 2026-11-19T15:30 | now
day before yesterday | 2026-11-18 | 2026-11-19
the day before yesterday | 2026-11-18 | 2026-11-19
last night | 2026-11-19T18:00 | 2026-11-20T06:00
yesterday morning | 2026-11-19T06:00 | 2026-11-19T12:00
yesterday afternoon | 2026-11-19T12:00 | 2026-11-19T18:00
yesterday evening | 2026-11-19T18:00 | 2026-11-20
this morning | 2026-11-20T06:00 | 2026-11-20T12:00
this afternoon | 2026-11-20T12:00 | now
monday night | 2026-11-16T18:00 | 2026-11-17T06:00
tuesday morning | 2026-11-17T06:00 | 2026-11-17T12:00
this hour | 2026-11-20T15:00 | now
this week | 2026-11-16 | now
this month | 2026-11-01 | now
this quarter | 2026-10-01 | now
this year | 2026-01-01 | now
last minute | 2026-11-20T15:29 | now
last hour | 2026-11-20T14:30 | now
last day | 2026-11-19T15:30 | now
last week | 2026-11-13T15:30 | now
last month | 2026-10-21T15:30 | now
last quarter | 2026-07-01 | 2026-10-01
last year | 2025-01-01 | 2026-01-01
past quarter | 2026-08-21T15:30 | now
past year | 2025-11-20T15:30 | now
past week | 2026-11-13T15:30 | now
last weekend | 2026-11-14 | 2026-11-16
weekend | 2026-11-14 | 2026-11-16
the week before last | 2026-11-02 | 2026-11-09
the month before last | 2026-09-01 | 2026-10-01
last 3 days | 2026-11-17T15:30 | now
past 24 hours | 2026-11-19T15:30 | now
the last two weeks | 2026-11-06T15:30 | now
in the last 90 days | 2026-08-22T15:30 | now
over the past couple of months | 2026-09-21T15:30 | now
last few days | 2026-11-15T15:30 | now
last several weeks | 2026-10-02T15:30 | now
two weeks ago | 2026-11-06T15:30 | now
a couple of days ago | 2026-11-18T15:30 | now
a few days ago | 2026-11-15T15:30 | now
an hour ago | 2026-11-20T14:30 | now
half an hour ago | 2026-11-20T15:00 | now
half a year ago | 2026-05-22T03:30 | now
2 weeks and 3 days ago | 2026-11-03T15:30 | now
1.5 hours ago | 2026-11-20T14:00 | now
90d | 2026-08-22T15:30 | now
2w | 2026-11-06T15:30 | now
3h | 2026-11-20T12:30 | now
1y | 2025-11-20T15:30 | now
6mo | 2026-05-24T15:30 | now
30min | 2026-11-20T15:00 | now
90s | 2026-11-20T15:28:30 | now
1h30min | 2026-11-20T14:00 | now
90 days | 2026-08-22T15:30 | now
within 3 days | 2026-11-17T15:30 | now
friday | 2026-11-20 | now
last friday | 2026-11-13 | 2026-11-14
this friday | 2026-11-20 | now
this tuesday | 2026-11-17 | 2026-11-18
tue | 2026-11-17 | 2026-11-18
thurs | 2026-11-19 | 2026-11-20
on monday | 2026-11-16 | 2026-11-17
tuesday last week | 2026-11-10 | 2026-11-11
last week's tuesday | 2026-11-10 | 2026-11-11
october | 2026-10-01 | 2026-11-01
in october | 2026-10-01 | 2026-11-01
last october | 2026-10-01 | 2026-11-01
last november | 2025-11-01 | 2025-12-01
this november | 2026-11-01 | now
december | 2025-12-01 | 2026-01-01
oct 2024 | 2024-10-01 | 2024-11-01
october of 2024 | 2024-10-01 | 2024-11-01
2024 october | 2024-10-01 | 2024-11-01
oct 5 | 2026-10-05 | 2026-10-06
5 oct | 2026-10-05 | 2026-10-06
5th of october | 2026-10-05 | 2026-10-06
October 5th, 2024 | 2024-10-05 | 2024-10-06
5 oct 2024 | 2024-10-05 | 2024-10-06
oct 5 2024 | 2024-10-05 | 2024-10-06
dec 5 | 2025-12-05 | 2025-12-06
nov 20 | 2026-11-20 | now
feb 29 | 2024-02-29 | 2024-03-01
5th of last month | 2026-10-05 | 2026-10-06
october last year | 2025-10-01 | 2025-11-01
last year october 5 | 2025-10-05 | 2025-10-06
since monday | 2026-11-16 | now
since yesterday | 2026-11-19 | now
since october | 2026-10-01 | now
since 2026-11-01 | 2026-11-01 | now
since 2027-01-01 | 2027-01-01 | …
since 3 days | 2026-11-17T15:30 | now
after october | 2026-11-01 | now
after monday | 2026-11-17 | now
after 2026-10-01 | 2026-10-02 | now
before october | … | 2026-10-01
before yesterday | … | 2026-11-19
until yesterday | … | 2026-11-20
until tuesday | … | 2026-11-18
up to 2026-10 | … | 2026-11-01
older than 30 days | … | 2026-10-21T15:30
newer than 2 weeks | 2026-11-06T15:30 | now
between monday and wednesday | 2026-11-16 | 2026-11-19
between wednesday and monday | 2026-11-11 | 2026-11-17
from friday to thursday | 2026-11-13 | 2026-11-20
from saturday to monday | 2026-11-14 | 2026-11-17
between 3 days ago and 1 day ago | 2026-11-17T15:30 | 2026-11-19T15:30
between 1 day ago and 3 days ago | 2026-11-17T15:30 | 2026-11-19T15:30
from oct 5 to oct 9 | 2026-10-05 | 2026-10-10
from december 20 to january 5 | 2025-12-20 | 2026-01-06
october to december | 2025-10-01 | 2026-01-01
monday to yesterday | 2026-11-16 | 2026-11-20
between yesterday and monday | 2026-11-16 | 2026-11-20
2026-10-01..2026-10-05 | 2026-10-01 | 2026-10-06
2026-10.. | 2026-10-01 | now
..2026-10 | … | 2026-11-01
2026-10-01/2026-10-05 | 2026-10-01 | 2026-10-06
2025 - 2026 | 2025-01-01 | 2027-01-01
monday - wednesday | 2026-11-16 | 2026-11-19
2026-11-01 | 2026-11-01 | 2026-11-02
2026/11/01 | 2026-11-01 | 2026-11-02
2026.11.01 | 2026-11-01 | 2026-11-02
2026. 11. 1. | 2026-11-01 | 2026-11-02
2026-11 | 2026-11-01 | 2026-12-01
2026/11 | 2026-11-01 | 2026-12-01
2025 | 2025-01-01 | 2026-01-01
in 2025 | 2025-01-01 | 2026-01-01
2026-W07 | 2026-02-09 | 2026-02-16
2026w07 | 2026-02-09 | 2026-02-16
2026-w07-3 | 2026-02-11 | 2026-02-12
20261101 | 2026-11-01 | 2026-11-02
q3 2025 | 2025-07-01 | 2025-10-01
2025 Q3 | 2025-07-01 | 2025-10-01
2025-q3 | 2025-07-01 | 2025-10-01
2025q3 | 2025-07-01 | 2025-10-01
q3 | 2026-07-01 | 2026-10-01
q4 | 2026-10-01 | now
third quarter of 2025 | 2025-07-01 | 2025-10-01
h1 2025 | 2025-01-01 | 2025-07-01
first half of 2026 | 2026-01-01 | 2026-07-01
2027-01-01 | 2027-01-01 | 2027-01-02
9999 | 9999-01-01 | end
9999-12-31 | 9999-12-31 | end
0001 | 0001-01-01 | 0002-01-01
0001-01-01 | 0001-01-01 | 0001-01-02
2026-11-01T09:30 | 2026-11-01T09:30 | 2026-11-01T09:31
2026-11-01 09:30 | 2026-11-01T09:30 | 2026-11-01T09:31
2026-11-01T09:30:15Z | 2026-11-01T09:30:15 | 2026-11-01T09:30:16
2026-11-01T09:30:00+09:00 | 2026-11-01T00:30 | 2026-11-01T00:30:01
2026-11-01T09 | 2026-11-01T09:00 | 2026-11-01T10:00
13/11/2025 | 2025-11-13 | 2025-11-14
11/13/2025 | 2025-11-13 | 2025-11-14
05/05/2025 | 2025-05-05 | 2025-05-06
11/20 | 2026-11-20 | now
last tuesday at 3pm | 2026-11-17T15:00 | 2026-11-17T16:00
tuesday at 3pm | 2026-11-17T15:00 | 2026-11-17T16:00
yesterday 15:30 | 2026-11-19T15:30 | 2026-11-19T15:31
oct 5 at noon | 2026-10-05T12:00 | 2026-10-05T13:00
3pm | 2026-11-20T15:00 | now
3pm last tuesday | 2026-11-17T15:00 | 2026-11-17T16:00
2 hours after noon yesterday | 2026-11-19T14:00 | 2026-11-19T14:01
noon yesterday | 2026-11-19T12:00 | 2026-11-19T13:00
tuesday at 3pm last week | 2026-11-10T15:00 | 2026-11-10T16:00
3 days ago at 3pm | 2026-11-17T15:00 | 2026-11-17T16:00
3 days ago at 3:15pm | 2026-11-17T15:15 | 2026-11-17T15:16
1 month ago at 3pm | 2026-10-21T15:00 | 2026-10-21T16:00
a couple of days ago at 9am | 2026-11-18T09:00 | 2026-11-18T10:00
3 days ago at night | 2026-11-17T18:00 | 2026-11-18T06:00
0 days ago at 3pm | 2026-11-20T15:00 | now
3일 전 오후 3시 | 2026-11-17T15:00 | 2026-11-17T16:00
사흘전 오후 | 2026-11-17T12:00 | 2026-11-18
2 hours after 3 days ago at 3pm | 2026-11-17T17:00 | 2026-11-17T17:01
a week ago yesterday at 3pm | 2026-11-12T15:00 | 2026-11-12T16:00
a week ago tuesday at 3:15pm | 2026-11-10T15:15 | 2026-11-10T15:16
2 hours from noon yesterday | 2026-11-19T14:00 | 2026-11-19T14:01
yesterday from 9am to 11am | 2026-11-19T09:00 | 2026-11-19T11:00
yesterday between 2 and 4 pm | 2026-11-19T14:00 | 2026-11-19T16:00
yesterday from 11 to 1pm | 2026-11-19T11:00 | 2026-11-19T13:00
monday 9 to 11am | 2026-11-16T09:00 | 2026-11-16T11:00
between 2 and 4pm yesterday | 2026-11-19T14:00 | 2026-11-19T16:00
from 9 to 11am | 2026-11-20T09:00 | 2026-11-20T11:00
yesterday between 9am and 11am | 2026-11-19T09:00 | 2026-11-19T11:00
9am to 11am yesterday | 2026-11-19T09:00 | 2026-11-19T11:00
last friday 9am to 11am | 2026-11-13T09:00 | 2026-11-13T11:00
yesterday morning to noon | 2026-11-19T06:00 | 2026-11-19T12:00
last night to 3am | 2026-11-19T18:00 | 2026-11-20T03:00
monday 9am to wednesday 5pm | 2026-11-16T09:00 | 2026-11-18T17:00
from friday 3pm to monday 9am | 2026-11-13T15:00 | 2026-11-16T09:00
last week from monday to wednesday | 2026-11-09 | 2026-11-12
last week friday to monday | 2026-11-13 | 2026-11-17
last week monday 9am to wednesday 5pm | 2026-11-09T09:00 | 2026-11-11T17:00
from last week to friday | 2026-11-09 | now
2025 may to june | 2025-05-01 | 2025-07-01
may 2025 to june | 2025-05-01 | 2025-07-01
may to june 2025 | 2025-05-01 | 2025-07-01
q1 2025 to q2 | 2025-01-01 | 2025-07-01
q4 2025 to q1 | 2025-10-01 | 2026-04-01
q2 2025 to h1 | 2025-04-01 | 2026-07-01
october 2025 to last october | 2025-10-01 | 2026-11-01
between 11am and 9am | 2026-11-20T09:00 | 2026-11-20T11:00
may 3 2025 to june 5 | 2025-05-03 | 2025-06-06
2025-03 to may | 2025-03-01 | 2025-06-01
from 2025 to may | 2025-01-01 | 2026-06-01
last year march to may | 2025-03-01 | 2025-06-01
yesterday evening at 7pm | 2026-11-19T19:00 | 2026-11-19T20:00
yesterday evening at 7:30 | 2026-11-19T19:30 | 2026-11-19T19:31
yesterday morning at 9:30 | 2026-11-19T09:30 | 2026-11-19T09:31
yesterday afternoon at 3pm | 2026-11-19T15:00 | 2026-11-19T16:00
last monday evening at 7pm | 2026-11-16T19:00 | 2026-11-16T20:00
last night at 9pm | 2026-11-19T21:00 | 2026-11-19T22:00
monday night at 2am | 2026-11-17T02:00 | 2026-11-17T03:00
last night at 12:30 | 2026-11-20T00:30 | 2026-11-20T00:31
this morning from 9am to 1pm | 2026-11-20T09:00 | 2026-11-20T13:00
last night 10pm to 8am | 2026-11-19T22:00 | 2026-11-20T08:00
last night to 8am | 2026-11-19T18:00 | 2026-11-20T08:00
3 hours after noon 2 days ago | 2026-11-18T15:00 | 2026-11-18T15:01
yesterday 10pm to 2am | 2026-11-19T22:00 | 2026-11-20T02:00
yesterday 10pm to midnight | 2026-11-19T22:00 | 2026-11-20
between yesterday 10pm and 2am | 2026-11-19T22:00 | 2026-11-20T02:00
last friday 10pm to 2am | 2026-11-13T22:00 | 2026-11-14T02:00
2026-10-05T22:00+09:00 to 2:00 | 2026-10-05T13:00 | 2026-10-05T17:00
from 2025-05-03 to may | 2025-05-03 | 2026-06-01
nov 20 2025 to november | 2025-11-20 | now
from 2025-11-20 to november | 2025-11-20 | now
november last year to november | 2025-11-01 | now
may 2025 to may | 2025-05-01 | 2026-06-01
monday last week to monday | 2026-11-09 | 2026-11-17
between monday last week and monday | 2026-11-09 | 2026-11-17
2026-10-05 9am to 11am | 2026-10-05T09:00 | 2026-10-05T11:00
2026-10-05 09:00 to 11:30 | 2026-10-05T09:00 | 2026-10-05T11:30
2026-10-05T09:00..11:30 | 2026-10-05T09:00 | 2026-10-05T11:30
2026-10-05T09:00+09:00 to 5pm | 2026-10-05T00:00 | 2026-10-05T08:00
yesterday midnight to 3am | 2026-11-19 | 2026-11-19T03:00
2 days ago at 3pm to 5pm | 2026-11-18T15:00 | 2026-11-18T17:00
since last tuesday at 3pm | 2026-11-17T15:00 | now
오늘 | 2026-11-20 | now
어제 | 2026-11-19T15:30 | now
그저께 | 2026-11-18 | 2026-11-19
엊그제 | 2026-11-18T15:30 | now
지난주 | 2026-11-13T15:30 | now
이번 주 | 2026-11-16 | now
이번주 | 2026-11-16 | now
지난달 | 2026-10-21T15:30 | now
이번 달 | 2026-11-01 | now
작년 | 2025-01-01 | 2026-01-01
재작년 | 2024-01-01 | 2025-01-01
올해 | 2026-01-01 | now
3일 전 | 2026-11-17T15:30 | now
3일전 | 2026-11-17T15:30 | now
10분 전 | 2026-11-20T15:20 | now
2시간 전 | 2026-11-20T13:30 | now
2주 전 | 2026-11-06T15:30 | now
3개월 전 | 2026-08-22T15:30 | now
2년 전 | 2024-11-20T15:30 | now
한 달 전 | 2026-10-21T15:30 | now
두 달 전 | 2026-09-21T15:30 | now
일주일 전 | 2026-11-13T15:30 | now
하루 전 | 2026-11-19T15:30 | now
이틀 전 | 2026-11-18T15:30 | now
며칠 전 | 2026-11-15T15:30 | now
몇 주 전 | 2026-10-16T15:30 | now
반년 전 | 2026-05-22T03:30 | now
최근 3일 | 2026-11-17T15:30 | now
최근 일주일 | 2026-11-13T15:30 | now
지난 24시간 | 2026-11-19T15:30 | now
최근 3일간 | 2026-11-17T15:30 | now
최근 3개월 동안 | 2026-08-22T15:30 | now
10월 | 2026-10-01 | 2026-11-01
10월에 | 2026-10-01 | 2026-11-01
지난 10월 | 2026-10-01 | 2026-11-01
작년 10월 | 2025-10-01 | 2025-11-01
2025년 | 2025-01-01 | 2026-01-01
2025년 10월 | 2025-10-01 | 2025-11-01
2025년 11월 1일 | 2025-11-01 | 2025-11-02
11월 1일 | 2026-11-01 | 2026-11-02
월요일 | 2026-11-16 | 2026-11-17
지난 월요일 | 2026-11-16 | 2026-11-17
이번 주 월요일 | 2026-11-16 | 2026-11-17
지난주 화요일 | 2026-11-10 | 2026-11-11
지난 주말 | 2026-11-14 | 2026-11-16
월요일부터 수요일까지 | 2026-11-16 | 2026-11-19
지난주 월요일부터 수요일까지 | 2026-11-09 | 2026-11-12
2025년 3월부터 5월까지 | 2025-03-01 | 2025-06-01
어제 오전 9시부터 11시까지 | 2026-11-19T09:00 | 2026-11-19T11:00
어제 오후 3시부터 5시까지 | 2026-11-19T15:00 | 2026-11-19T17:00
어제 9시와 11시 사이 | 2026-11-19T09:00 | 2026-11-19T11:00
어제 저녁 7시부터 9시까지 | 2026-11-19T19:00 | 2026-11-19T21:00
지난 금요일 오후 10시부터 오전 2시까지 | 2026-11-13T22:00 | 2026-11-14T02:00
월요일부터 | 2026-11-16 | now
어제부터 | 2026-11-19 | now
어제까지 | … | 2026-11-20
10월부터 12월까지 | 2025-10-01 | 2026-01-01
11월 1일부터 11월 5일까지 | 2026-11-01 | 2026-11-06
11월 1일부터 5일까지 | 2026-11-01 | 2026-11-06
11월 1일 ~ 11월 5일 | 2026-11-01 | 2026-11-06
월요일과 수요일 사이 | 2026-11-16 | 2026-11-19
10월 이후 | 2026-10-01 | now
10월 이전 | … | 2026-10-01
10월 전 | … | 2026-10-01
어젯밤 | 2026-11-19T18:00 | 2026-11-20T06:00
오늘 아침 | 2026-11-20T06:00 | 2026-11-20T12:00
오늘 오전 | 2026-11-20 | 2026-11-20T12:00
어제 오후 | 2026-11-19T12:00 | 2026-11-20
어제 오후 3시 | 2026-11-19T15:00 | 2026-11-19T16:00
어제 15시 30분 | 2026-11-19T15:30 | 2026-11-19T15:31
오후 3시 반 | 2026-11-20T15:30 | now
지난달 5일 | 2026-10-05 | 2026-10-06
3분기 | 2026-07-01 | 2026-10-01
2025년 3분기 | 2025-07-01 | 2025-10-01
작년 3분기 | 2025-07-01 | 2025-10-01
이번 분기 | 2026-10-01 | now
지난 분기 | 2026-07-01 | 2026-10-01
2025년 상반기 | 2025-01-01 | 2025-07-01
10초 전 | 2026-11-20T15:29:50 | now
２０２６년 １１월 １일 | 2026-11-01 | 2026-11-02
３ days ago | 2026-11-17T15:30 | now
last week. | 2026-11-13T15:30 | now
LAST    week | 2026-11-13T15:30 | now
10월달 | 2026-10-01 | 2026-11-01
oct 5-9 | 2026-10-05 | 2026-10-10
oct 5 to 9 | 2026-10-05 | 2026-10-10
5 to 9 october 2024 | 2024-10-05 | 2024-10-10
5-9 oct | 2026-10-05 | 2026-10-10
2025년 11월 1일~5일 | 2025-11-01 | 2025-11-06
5 minutes before midnight yesterday | 2026-11-18T23:55 | 2026-11-18T23:56
since monday 9am | 2026-11-16T09:00 | now
between monday 9am and tuesday 10:30 | 2026-11-16T09:00 | 2026-11-17T10:30
5월5일 | 2026-05-05 | 2026-05-06
2 days ago | 2026-11-18T15:30 | now
past 7 days | 2026-11-13T15:30 | now
since 2 weeks ago | 2026-11-06T15:30 | now
last twenty minutes | 2026-11-20T15:10 | now
recent 3 days | 2026-11-17T15:30 | now
several weeks ago | 2026-10-02T15:30 | now
tues | 2026-11-17 | 2026-11-18
sunday | 2026-11-15 | 2026-11-16
saturday night | 2026-11-14T18:00 | 2026-11-15T06:00
wed morning | 2026-11-18T06:00 | 2026-11-18T12:00
yesterday night | 2026-11-19T18:00 | 2026-11-20T06:00
morning of oct 5 | 2026-10-05T06:00 | 2026-10-05T12:00
this week monday | 2026-11-16 | 2026-11-17
last month 5th | 2026-10-05 | 2026-10-06
year before last | 2024-01-01 | 2025-01-01
may | 2026-05-01 | 2026-06-01
march 2025 | 2025-03-01 | 2025-04-01
Sept 2025 | 2025-09-01 | 2025-10-01
jan 1 | 2026-01-01 | 2026-01-02
1st january 2026 | 2026-01-01 | 2026-01-02
31 dec 2025 | 2025-12-31 | 2026-01-01
2024 feb 29 | 2024-02-29 | 2024-03-01
q1 | 2026-01-01 | 2026-04-01
2024-q1 | 2024-01-01 | 2024-04-01
h2 | 2026-07-01 | now
h2 2025 | 2025-07-01 | 2026-01-01
since q3 | 2026-07-01 | now
before 2026 | … | 2026-01-01
after 2025 | 2026-01-01 | now
until 2026-10-15 | … | 2026-10-16
by friday | … | now
through october | … | 2026-11-01
prior to monday | … | 2026-11-16
earlier than yesterday | … | 2026-11-19
later than monday | 2026-11-17 | now
starting monday | 2026-11-16 | now
from last week | 2026-11-09 | now
from last month to yesterday | 2026-10-01 | 2026-11-20
2025.. | 2025-01-01 | now
monday.. | 2026-11-16 | now
between 2026-10-01 and 2026-10-15 | 2026-10-01 | 2026-10-16
between october and november | 2026-10-01 | now
from 2026-10-01T09:00 to 2026-10-01T11:30 | 2026-10-01T09:00 | 2026-10-01T11:30
2026-10-01T09:00Z..2026-10-02T10:00Z | 2026-10-01T09:00 | 2026-10-02T10:00
2026-11-01T00:00-05:00 | 2026-11-01T05:00 | 2026-11-01T05:01
2026-11-01 09:30 UTC | 2026-11-01T09:30 | 2026-11-01T09:31
2026-11-01T09:30GMT | 2026-11-01T09:30 | 2026-11-01T09:31
9999-12 | 9999-12-01 | end
2028-02-29 | 2028-02-29 | 2028-03-01
２０２６-１１-０１ | 2026-11-01 | 2026-11-02
last   week | 2026-11-13T15:30 | now
그제 | 2026-11-18 | 2026-11-19
어저께 | 2026-11-19T15:30 | now
오늘 새벽 | 2026-11-20 | 2026-11-20T06:00
어제 밤 | 2026-11-19T18:00 | 2026-11-20T06:00
어제 정오 | 2026-11-19T12:00 | 2026-11-19T13:00
간밤 | 2026-11-19T18:00 | 2026-11-20T06:00
지난주말 | 2026-11-14 | 2026-11-16
최근 한 달 | 2026-10-21T15:30 | now
지난 3주 | 2026-10-30T15:30 | now
최근 며칠 | 2026-11-15T15:30 | now
90분 전 | 2026-11-20T14:00 | now
열흘 전 | 2026-11-10T15:30 | now
보름 전 | 2026-11-05T15:30 | now
석 달 전 | 2026-08-22T15:30 | now
넉 달 전 | 2026-07-23T15:30 | now
몇 시간 전 | 2026-11-20T10:30 | now
30초 전 | 2026-11-20T15:29:30 | now
올해 3월 | 2026-03-01 | 2026-04-01
올해 1분기 | 2026-01-01 | 2026-04-01
재작년 5월 | 2024-05-01 | 2024-06-01
2024년 2월 29일 | 2024-02-29 | 2024-03-01
3월 1일 | 2026-03-01 | 2026-03-02
어제 이후 | 2026-11-19 | now
2026년 10월부터 | 2026-10-01 | now
2026년 10월까지 | … | 2026-11-01
지난주부터 어제까지 | 2026-11-09 | 2026-11-20
10월에서 11월까지 | 2026-10-01 | now
2026-10-01부터 2026-10-05까지 | 2026-10-01 | 2026-10-06
지난달 이전 | … | 2026-10-01
지금까지 | … | 2026-11-20T15:30
24시간 이내 | 2026-11-19T15:30 | now
1000 years ago | 1027-07-21T15:30 | now
last 1000 years | 1027-07-21T15:30 | now
2000년 전 | … | 2000-01-01
no later than november 10 | … | 2026-11-11
not later than november 10 | … | 2026-11-11
november 10 at the latest | … | 2026-11-11
not after november 10 | … | 2026-11-11
no earlier than november 10 | 2026-11-10 | now
not before november 10 | 2026-11-10 | now
on or before november 10 | … | 2026-11-11
before or on november 10 | … | 2026-11-11
on or after november 10 | 2026-11-10 | now
up to and including november 10 | … | 2026-11-11
november 10 onwards | 2026-11-10 | now
more than two weeks ago | … | 2026-11-06T15:30
over two weeks ago | … | 2026-11-06T15:30
over a year ago | … | 2025-11-20T15:30
at least 2 weeks ago | … | 2026-11-06T15:30
no less than 2 weeks ago | … | 2026-11-06T15:30
less than 3 days ago | 2026-11-17T15:30 | now
under 3 days ago | 2026-11-17T15:30 | now
at most 3 days ago | 2026-11-17T15:30 | now
no more than 3 days ago | 2026-11-17T15:30 | now
over the weekend | 2026-11-14 | 2026-11-16
up until october | … | 2026-11-01
yesterday and today | 2026-11-19 | now
today or yesterday | 2026-11-19 | now
yesterday or the day before | 2026-11-18 | 2026-11-20
yesterday through today | 2026-11-19 | now
monday through wednesday | 2026-11-16 | 2026-11-19
tuesday and wednesday | 2026-11-17 | 2026-11-19
october and november | 2026-10-01 | now
in october or november | 2026-10-01 | now
2025 and 2026 | 2025-01-01 | now
last week and this week | 2026-11-09 | now
november 9 and 10 | 2026-11-09 | 2026-11-11
오늘과 어제 | 2026-11-19 | now
어제랑 그제 | 2026-11-18 | 2026-11-20
2 to 3 weeks ago | 2026-10-30T15:30 | 2026-11-06T15:30
two or three weeks ago | 2026-10-30T15:30 | 2026-11-06T15:30
from 2 to 3 weeks ago | 2026-10-30T15:30 | 2026-11-06T15:30
a day or two ago | 2026-11-18T15:30 | 2026-11-19T15:30
first week of november | 2026-11-01 | 2026-11-08
the second week of last month | 2026-10-08 | 2026-10-15
last week of october | 2026-10-25 | 2026-11-01
last 3 days of october | 2026-10-29 | 2026-11-01
first 10 days of the month | 2026-11-01 | 2026-11-11
first day of last week | 2026-11-09 | 2026-11-10
first half of october | 2026-10-01 | 2026-10-16
second half of november | 2026-11-16 | now
first half of last year | 2025-01-01 | 2025-07-01
week of november 10 | 2026-11-09 | 2026-11-16
day before november 10 | 2026-11-09 | 2026-11-10
the day after november 10 | 2026-11-11 | 2026-11-12
the week before last week | 2026-11-02 | 2026-11-09
since the beginning of november | 2026-11-01 | now
end of october | 2026-10-25 | 2026-11-01
at the end of last month | 2026-10-25 | 2026-11-01
beginning of this month | 2026-11-01 | 2026-11-08
end of last week | 2026-11-14 | 2026-11-16
start of 2026 | 2026-01-01 | 2026-02-01
end of q3 | 2026-09-01 | 2026-10-01
from the end of last month to the start of this month | 2026-11-01 | 2026-11-01
oct 5 2 to 4pm | 2026-10-05T14:00 | 2026-10-05T16:00
5 oct 2024 11 to 1pm | 2024-10-05T11:00 | 2024-10-05T13:00
oct 5 from 2 to 4pm | 2026-10-05T14:00 | 2026-10-05T16:00
since the start of the year | 2026-01-01 | now
until the end of october | … | 2026-11-01
by the end of last week | … | 2026-11-16
from the start of october to the end of october | 2026-10-01 | 2026-11-01
1000년 전 | … | 1000-01-01
a fortnight ago | 2026-11-06T15:30 | now
the last fortnight | 2026-11-06T15:30 | now
over a fortnight ago | … | 2026-11-06T15:30
the 5th | 2026-11-05 | 2026-11-06
20th | 2026-11-20 | now
21st | 2026-10-21 | 2026-10-22
the 31st | 2026-10-31 | 2026-11-01
the 5th at 3pm | 2026-11-05T15:00 | 2026-11-05T16:00
since the 5th | 2026-11-05 | now
from the 5th to the 9th | 2026-11-05 | 2026-11-10
between the 25th and the 3rd | 2026-10-25 | 2026-11-04
3 days before yesterday | 2026-11-16 | 2026-11-17
어제 3일 전 | 2026-11-16 | 2026-11-17
since 3 days before yesterday | 2026-11-16 | now
between 3 days before yesterday and yesterday | 2026-11-16 | 2026-11-20
two weeks before yesterday at 3pm | 2026-11-05T15:00 | 2026-11-05T16:00
yesterday 3pm two weeks ago | 2026-11-05T15:00 | 2026-11-05T16:00
a week ago yesterday | 2026-11-12 | 2026-11-13
two weeks ago monday at 9am | 2026-11-02T09:00 | 2026-11-02T10:00
friday two weeks ago | 2026-11-06 | 2026-11-07
monday two weeks ago | 2026-11-02 | 2026-11-03
monday 3pm two weeks ago | 2026-11-02T15:00 | 2026-11-02T16:00
early october | 2026-10-01 | 2026-10-11
mid october | 2026-10-11 | 2026-10-21
late october 2025 | 2025-10-21 | 2025-11-01
the middle of last month | 2026-10-11 | 2026-10-21
late february 2026 | 2026-02-21 | 2026-03-01
2 days before november 10 | 2026-11-08 | 2026-11-09
2 days before november 10 at 3pm | 2026-11-08T15:00 | 2026-11-08T16:00
two weeks after october 5, 2025 | 2025-10-19 | 2025-10-20
day before november 10 at noon | 2026-11-09T12:00 | 2026-11-09T13:00
the day after the 5th | 2026-11-06 | 2026-11-07
day before saturday | 2026-11-13 | 2026-11-14
november 10 and the day after november 10 | 2026-11-10 | 2026-11-12
24 hours after noon 2 days ago | 2026-11-19T12:00 | 2026-11-19T13:00
"""

# expression | message | part of the hint
REFUSED = """
tonight | has not begun yet | memories are of the past: name a time that has begun
this evening | has not begun yet | memories are of the past: name a time that has begun
this weekend | has not begun yet | memories are of the past: name a time that has begun
3m | may mean minutes or months | write `3min` or `3mo`
in 3 days | is not a time that is understood | say it like
3 days from now | is not a time that is understood | say it like
tomorrow | is not a time that is understood | say it like
next week | is not a time that is understood | say it like
next tuesday | is not a time that is understood | say it like
this saturday | has not begun yet | memories are of the past: name a time that has begun
this december | has not begun yet | memories are of the past: name a time that has begun
feb 29 2025 | is not a day of the calendar | dates are ISO 8601, such as 2026-11-20
feb 30 | is no day | February has 29 days
32 october | is no day | October has 31 days
after today | has nothing after it: it has not ended yet | `since` counts it, too
2026-W54 | is not a week of the calendar | weeks are as in 2026-W07
0000 | is not a year of the calendar | years are 1 to 9999
2026-13-01 | is not a day of the calendar | dates are ISO 8601, such as 2026-11-20
2026-02-30 | is not a day of the calendar | dates are ISO 8601, such as 2026-11-20
2026-11-01T25:00 | is not a time of the clock | times and zones are as in 2026-11-20T15:30+09:00
01/11/2025 | may mean two days | write `2025-11-01` or `2025-01-11`
1.11.2025 | may mean two days | write `2025-11-01` or `2025-01-11`
01-11-2025 | may mean two days | write `2025-11-01` or `2025-01-11`
11/5 | may mean two days | write `2026-05-11` or `2026-11-05`
1/11/25 | has no year of four digits | write dates as in 2026-11-20
today at 5pm | has not begun yet | memories are of the past: name a time that has begun
last tuesday at 3pm at 4pm | is not a time that is understood | say it like
last week 3pm | is not a time that is understood | say it like
yesterday from 9am | is not a time that is understood | say it like
yesterday 10pm to noon | ends before it begins | the start must come before the end
between tuesday 3pm and 9am | ends before it begins | the start must come before the end
오전 9시와 3시 사이 | ends before it begins | the start must come before the end
지난 금요일 오후 10시부터 2시까지 | ends before it begins | the start must come before the end
oct 9 to 5 | ends before it begins | the start must come before the end
tuesday 3pm to 9am | ends before it begins | the start must come before the end
9am to yesterday | ends before it begins | the start must come before the end
from today to yesterday | ends before it begins | the start must come before the end
오전 9시부터 3시까지 | ends before it begins | the start must come before the end
yesterday morning at 7pm | is not a time that is understood | say it like
today to midnight | is not a time that is understood | say it like
9am october | is not a time that is understood | say it like
oct 9am | is not a time that is understood | say it like
3pm december | is not a time that is understood | say it like
oct 3pm to 5pm | is not a time that is understood | say it like
tomorrow at 3pm | is not a time that is understood | say it like
999999 years ago | is outside the calendar | name a time in the years 1 to 9999
99999999999999999999 days ago | is outside the calendar | name a time in the years 1 to 9999
last 5000 years | is outside the calendar | name a time in the years 1 to 9999
fix march bug | is not a time that is understood | say it like
may be | is not a time that is understood | say it like
sat on the mat | is not a time that is understood | say it like
yesteday | is not a time that is understood | say it like
last wek | is not a time that is understood | say it like
betwen monday and wednesday | is not a time that is understood | say it like
어재 | is not a time that is understood | say it like
지난쥬 | is not a time that is understood | say it like
이번 주말 | has not begun yet | memories are of the past: name a time that has begun
내일 | is not a time that is understood | say it like
다음 주 | is not a time that is understood | say it like
3일 후 | is not a time that is understood | say it like
2 hours before yesterday | is not a time that is understood | say it like
end of day yesterday | is not a time that is understood | say it like
이번쥬말 | is not a time that is understood | say it like
9999-W53 | is not a week of the calendar | weeks are as in 2026-W07
-7 days ago | is not a time that is understood | say it like
- 7 days ago | is not a time that is understood | say it like
..7 days ago | is not a time that is understood | say it like
as of november 1 | is not a time that is understood | say it like
until after november 10 | is not a time that is understood | say it like
not since friday | is not a time that is understood | say it like
yesterday until noon | is not a time that is understood | say it like
and november 10 | is not a time that is understood | say it like
a november | is not a time that is understood | say it like
not yesterday | is not a time that is understood | say it like
over 2 weeks | is not a time that is understood | say it like
more than 2 weeks | is not a time that is understood | say it like
days before yesterday | is not a time that is understood | say it like
yesterday before | is not a time that is understood | say it like
second half of last week | is not a time that is understood | say it like
last 40 days of october | is not a time that is understood | say it like
early 2025 | is not a time that is understood | say it like
second week of monday | is not a time that is understood | say it like
monday and wednesday | names times that are not one span | name one of them, or a longer time
yesterday and tomorrow | is not a time that is understood | say it like
end of this month | has not begun yet | memories are of the past: name a time that has begun
end of yesterday | is not a time that is understood | say it like
beginning of next month | is not a time that is understood | say it like
oct 5 2 to 9 | is not a time that is understood | say it like
since the end of november | has nothing after it: it has not ended yet | name a time that has ended
mind | is not a time that is understood | say it like
1/2 | may mean two days | write `2026-02-01` or `2026-01-02`
lst tuesday | is not a time that is understood | say it like
octobr 2024 | is not a time that is understood | say it like
3 dyas ago | is not a time that is understood | say it like
-3 days | is not a time that is understood | say it like
- 3 days | is not a time that is understood | say it like
.. | is not a time that is understood | say it like
between and | is not a time that is understood | say it like
from | is not a time that is understood | say it like
오늘 저녁 | has not begun yet | memories are of the past: name a time that has begun
octbr | is not a time that is understood | say it like
lastweek | is not a time that is understood | say it like
last moth | is not a time that is understood | say it like
2 weks ago | is not a time that is understood | say it like
36 hours ago at 3pm | is not a time that is understood | say it like
1 month ago tuesday at 3pm | is not a time that is understood | say it like
5000 years ago yesterday at 3pm | is not a time that is understood | say it like
yesterday a week ago last at 3pm | is not a time that is understood | say it like
a day ago tuesday 2024-10-05 at 3pm | is not a time that is understood | say it like
a week ago yesterday at 3pm at 4pm | is not a time that is understood | say it like
800000 days before yesterday | is not a time that is understood | say it like
1 day before 0001-01-01 | is not a time that is understood | say it like
3 days from now | is not a time that is understood | say it like
a week before last month | is not a time that is understood | say it like
day after today | has not begun yet | memories are of the past: name a time that has begun
0th | is not a time that is understood | say it like
32nd | is not a time that is understood | say it like
0 days ago at 4pm | has not begun yet | memories are of the past
next month | is not a time that is understood | say it like
in two weeks | is not a time that is understood | say it like
the | is not a time that is understood | say it like
ago | is not a time that is understood | say it like
last | is not a time that is understood | say it like
3 | is not a time that is understood | say it like
3 apples ago | is not a time that is understood | say it like
october 5 6 | is not a time that is understood | say it like
monday tuesday | is not a time that is understood | say it like
2026-11-20T15:61 | is not a time of the clock | times and zones are as in 2026-11-20T15:30+09:00
2026-00 | is not a month of the calendar | months are 1 to 12: 2026-11
2026-w00 | is not a week of the calendar | weeks are as in 2026-W07
13:75 | names no time of the clock | times are as in `3pm` or `15:30`
25:00 | names no time of the clock | times are as in `3pm` or `15:30`
13pm | names no time of the clock | times are as in `3pm` or `15:30`
yesterday at 25:00 | names no time of the clock | times are as in `3pm` or `15:30`
99/99/2025 | is not a day of the calendar | write dates as in 2026-11-20
2026-11-31 | is not a day of the calendar | dates are ISO 8601, such as 2026-11-20
30 feb 2024 | is no day | February has 29 days
0000-01-01 | is not a day of the calendar | dates are ISO 8601, such as 2026-11-20
10000 years ago | is outside the calendar | name a time in the years 1 to 9999
1000000000000 weeks ago | is outside the calendar | name a time in the years 1 to 9999
🦊 | is not a time that is understood | say it like
? | is not a time that is understood | say it like
DROP TABLE memories | is not a time that is understood | say it like
십년 전 | is not a time that is understood | say it like
"""


def rows(table):
    return [tuple(part.strip() for part in line.split(" | ")) for line in table.strip().split("\n")]


def moment(text):
    match text:
        case "…":
            return None
        case "now":
            return NOW + timedelta(seconds=1)
        case "end":
            return datetime.max.replace(tzinfo=UTC)
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.req(
    "000-97", "000-100", "000-101", "000-102", "000-103", "000-104", "000-105", "000-106"
)
@pytest.mark.parametrize(
    ("expression", "since", "until"),
    rows(MEANT),
)
def test_expression_names_interval(expression, since, until):
    expected = Interval(since=moment(since), until=moment(until))
    assert when.interval(expression, now=NOW) == expected


@pytest.mark.req("000-108")
@pytest.mark.parametrize(("expression", "message", "hint"), rows(REFUSED))
def test_refusal_quotes_expression_and_gives_hint(expression, message, hint):
    with pytest.raises(Invalid) as caught:
        when.interval(expression, now=NOW)

    assert caught.value.message == f"`{expression}` {message}"
    assert hint in caught.value.hint
    assert caught.value.details == {"expression": expression}


def test_parsedatetime_does_not_read_the_machines_clock(monkeypatch):
    def refuse(*_):
        raise AssertionError("the clock of the machine was read")

    monkeypatch.setattr(time, "localtime", refuse)

    when.interval("a week ago tuesday at 3pm", now=NOW)


@pytest.mark.parametrize(
    "expression",
    [
        *("last week", "yesterday at 3pm", "3 days ago at 3pm to 5pm", "지난주 화요일", "2026-W07"),
        *("a fortnight ago", "the 5th", "the day before yesterday"),
    ],
)
def test_parsedatetime_is_not_loaded_if_the_grammar_has_an_answer(expression, monkeypatch):
    monkeypatch.setitem(sys.modules, "parsedatetime", None)

    when.interval(expression, now=NOW)


def test_weekday_with_a_week_is_of_that_week_on_a_monday():
    monday = moment("2026-11-16")
    interval = when.interval("friday at 3pm last week", now=monday)

    assert interval.since == moment("2026-11-13T15:00")

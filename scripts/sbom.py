"""Complete a bill of materials with the parts that are not Python packages, and check its form.

`sbom.py FILE` adds the version of mind and the packaged models with the hash of each file.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from mimo import __version__

MODEL = Path("mimo/model")
TEXTS = ("LICENSE", "NOTICE")


def completed(bom: dict[str, Any], version: str, model: Path) -> dict[str, Any]:
    """Returns the bill with the version and the files of the models."""
    component = bom["metadata"]["component"]
    root = {**component, "version": version, "purl": f"pkg:pypi/{component['name']}@{version}"}
    files = [
        {
            "type": "file",
            "bom-ref": f"model/{path.name}",
            "name": f"{model.as_posix()}/{path.name}",
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}
            ],
        }
        for path in sorted(model.iterdir())
        if path.is_file() and path.name not in TEXTS
    ]
    models = {
        "type": "machine-learning-model",
        "bom-ref": "model",
        "name": "all-MiniLM-L6-v2, modified",
        "version": version,
        "description": f"Derived from sentence-transformers/all-MiniLM-L6-v2; see {model}/NOTICE",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "components": files,
    }
    edges = [
        {**row, "dependsOn": sorted([*row.get("dependsOn", []), "model"])}
        if row["ref"] == root["bom-ref"]
        else row
        for row in bom["dependencies"]
    ]
    return {
        **bom,
        "metadata": {**bom["metadata"], "component": root},
        "components": [*bom["components"], models],
        "dependencies": [*edges, {"ref": "model"}],
    }


def main() -> int:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    path = Path(sys.argv[1])
    text = json.dumps(
        completed(json.loads(path.read_text(encoding="utf-8")), __version__, MODEL), indent=2
    )
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        print(f"{path}: {error}")
        return 1
    path.write_text(f"{text}\n", encoding="utf-8")
    print(f"{path}: {len(json.loads(text)['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main())

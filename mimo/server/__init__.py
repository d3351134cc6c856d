"""The MCP server: the command set as tools."""

"""The description of all requests by OpenAPI 3, made from the routes and the types of their functions.

- `openapi_document`: routes enter, a document leaves; it says nothing that the routes do not.
- `openapi_endpoints`: the document, and a plain page of it, for clients.

Nothing is described by hand here: what a request does is in the docstring of its function.
"""

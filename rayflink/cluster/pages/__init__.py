"""The pages of the dashboard: static files that a browser loads from the dispatcher, without a build and a network.

Files leave. What the pages show they get from the REST interface, by the requests that any client may send.

No page is made in Python, and no figure is computed here.
"""

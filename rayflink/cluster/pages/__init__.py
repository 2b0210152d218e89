"""The pages of the dashboard: static files that a browser loads from the dispatcher, without a build and a network.

- `static_pages`: the files of `files/` as answers, with a policy that lets nothing else be loaded or run.
- `files`: a page with ES modules: `main.js` is the frame, `jobs.js`, `job.js` and `processes.js` are the pages.

Files leave. What the pages show they get from the REST interface, by the requests that any client may send.

No page is made in Python, and no figure is computed here.
"""

import { pagePolicy } from '../../shared/page-policy.ts'

/**
 * Swagger UI sets styles by script only, which needs no `unsafe-inline`, and does not evaluate text as code, which would need
 * `unsafe-eval`. Its images are data: URLs.
 */
export const contentSecurityPolicy = pagePolicy(
	"script-src 'self'",
	"style-src 'self'",
	"img-src 'self' data:",
	"connect-src 'self'",
)

export const page = `<!doctype html>
<html lang="en">
	<head>
		<meta charset="utf-8" />
		<meta name="viewport" content="width=device-width, initial-scale=1" />
		<title>Agent gateway: reference of the API</title>
		<link rel="icon" type="image/png" href="/docs/favicon.png" />
		<link rel="stylesheet" href="/docs/swagger-ui.css" />
	</head>
	<body>
		<noscript>This page needs JavaScript. Without it, read <a href="/v1/openapi.json">/v1/openapi.json</a>.</noscript>
		<div id="reference"></div>
		<script src="/docs/swagger-ui-bundle.js"></script>
		<script src="/docs/reference.js"></script>
	</body>
</html>
`

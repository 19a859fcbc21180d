/** The files of the console's pages. They are built from `web/` on the first request, and kept in memory. */
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Fault } from '../../core/errors.ts'
import { once } from '../shared/once.ts'
import { encoded } from '../shared/encoded.ts'
import { pagePolicy } from '../shared/page-policy.ts'

/** The pages load and run only files of this gateway, and send requests only to it. */
export const contentSecurityPolicy = pagePolicy(
	"script-src 'self'",
	"style-src 'self'",
	"connect-src 'self'",
	'img-src data:',
)

const LIMIT_BYTES = 8 * 1024 * 1024
const TIMEOUT_MS = 60_000

export interface Pages {
	/** The HTML document at `/`. */
	html: string
	/** By name below /console/. */
	files: ReadonlyMap<string, ReturnType<typeof encoded>>
}

/** Throws `unavailable` if the pages cannot be built. */
export const pages = once(async (): Promise<Pages> => {
	const built = await outputOf(fileURLToPath(new URL('./make-web.mjs', import.meta.url)))
	const names = Object.keys(built)
	const find = (pattern: RegExp): string => names.find((name) => pattern.test(name)) ?? ''
	const files = Object.entries(built).map(([name, text]) => {
		const type = name.endsWith('.css') ? 'text/css' : 'text/javascript'
		return [name, encoded({ bytes: Buffer.from(text), etag: hash('sha256', text).slice(0, 16), type })] as const
	})
	return { html: htmlOf(find(/^app-\w+\.js$/), find(/^app-\w+\.css$/)), files: new Map(files) }
})

async function outputOf(program: string): Promise<Record<string, string>> {
	try {
		const { stdout } = await promisify(execFile)(process.execPath, [program], {
			maxBuffer: LIMIT_BYTES,
			timeout: TIMEOUT_MS,
		})
		return JSON.parse(stdout) as Record<string, string>
	} catch (error) {
		const message = 'the pages of the console cannot be built; run npm install, which adds esbuild'
		throw new Fault('unavailable', message, { cause: error })
	}
}

function htmlOf(script: string, style: string): string {
	return `<!doctype html>
<html lang="en">
	<head>
		<meta charset="utf-8" />
		<meta name="viewport" content="width=device-width, initial-scale=1" />
		<meta name="referrer" content="no-referrer" />
		<title>svc gateway</title>
		<link rel="icon" href="data:," />
		<link rel="stylesheet" href="/console/${style}" />
		<script type="module" src="/console/${script}"></script>
	</head>
	<body>
		<svc-console></svc-console>
		<noscript>The console needs JavaScript. Without it, use the command line: <code>svc --help</code></noscript>
	</body>
</html>
`
}

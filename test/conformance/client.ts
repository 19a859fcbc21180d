/**
 * The client that the official conformance suite drives: the engine of plugins/mcp, with a person who skips optional fields. The
 * suite passes the address of its server as the last argument.
 */
import { elicit } from '../../plugins/mcp/elicitation.ts'
import { openSession } from '../../plugins/mcp/session.ts'
import { boundedFetch } from '../../plugins/mcp/http.ts'
import { textOfResult } from '../../plugins/mcp/results.ts'
import { fetcherFor } from '../../core/fetch/guarded-fetch.ts'
import { openPerson } from './person.ts'

const CALL_LIMIT_MS = 20_000
const url = new URL(process.argv.at(-1) ?? '')
const args: Record<string, object> = { add_numbers: { a: 5, b: 3 } }

const fetcher = fetcherFor(url, {
	policy: { protocols: ['http:', 'https:'], private_first: true },
	max_bytes: Infinity,
	timeout_ms: Infinity,
})
const { login, signedIn } = await openPerson(url)
const session = await signedIn(() =>
	openSession(
		{ kind: 'http', url, fetch: boundedFetch(login.authorize(fetcher), {}) },
		{
			version: '1.0.0',
			toolsChanged() {},
			onError: (error) => console.error(error.message),
			onClose() {},
			elicit: (request) =>
				elicit(
					request,
					'conformance',
					(text) => text,
					async () => 'skip',
				),
		},
		AbortSignal.timeout(CALL_LIMIT_MS),
	),
)
for (const tool of (await signedIn(() => session.listTools(AbortSignal.timeout(CALL_LIMIT_MS)))) as {
	name: string
}[]) {
	const options = { signal: AbortSignal.timeout(CALL_LIMIT_MS), onprogress() {} }
	const result = await signedIn(() => session.callTool(tool.name, { ...args[tool.name] }, options))
	console.log(
		tool.name,
		textOfResult(result, (text) => text),
	)
}
await session.close()
await fetcher[Symbol.asyncDispose]()

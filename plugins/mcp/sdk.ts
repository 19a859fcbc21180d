/** What uses the SDK of MCP (session.ts), loaded when it is first needed. */
import type * as Sdk from './session.ts'

let sdk: Promise<typeof Sdk> | undefined

export function loadSdk(): Promise<typeof Sdk> {
	return (sdk ??= import('./session.ts'))
}

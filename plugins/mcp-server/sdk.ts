/** All that knows the official SDK, loaded with the first session: it takes about 150 ms and 20 MB. */
import type * as Session from './session.ts'

let session: Promise<typeof Session> | undefined

export function loadSession(): Promise<typeof Session> {
	return (session ??= import('./session.ts'))
}

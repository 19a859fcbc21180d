/** The addresses at which the gateway listens, and what to change if it cannot. */
import { messageOf } from '../errors.ts'
import type { FieldError } from '../errors.ts'

/** Each of the two addresses has its own hapi server in every generation. */
export type Address = 'main' | 'legacy'

export interface ListenAt {
	host: string
	port: number
}

/** The setting to change, and why listening failed. */
export function listenProblem(error: unknown, address: Address, { host, port }: ListenAt): FieldError {
	const [setting, variable] = address === 'main' ? ['server.port', 'SVC_PORT'] : ['legacy.port', 'SVC_LEGACY_PORT']
	const about = (path: string, why: string): FieldError => ({
		path,
		message: `cannot listen at ${host}:${port}: ${why}`,
	})
	switch ((error as NodeJS.ErrnoException).code) {
		case 'EADDRINUSE':
			return about(setting, `another program listens there; end it, or set ${setting} or ${variable} to another port`)
		case 'EACCES':
			return about(
				setting,
				`this user may not use it; ports below 1024 need privileges, so set ${setting} or ${variable} to a higher one`,
			)
		case 'EADDRNOTAVAIL':
		case 'ENOTFOUND':
			return about('server.host', 'this machine does not have that address; correct server.host or SVC_HOST')
		default:
			return about(setting, messageOf(error))
	}
}

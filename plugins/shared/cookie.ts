import type { IncomingMessage } from 'node:http'

/** The value of the first cookie of this name. */
export function cookieOf({ headers }: Pick<IncomingMessage, 'headers'>, name: string): string | undefined {
	const cookies = headers.cookie?.split(';') ?? []
	return cookies
		.map((one) => one.trim())
		.find((one) => one.startsWith(`${name}=`))
		?.slice(name.length + 1)
}

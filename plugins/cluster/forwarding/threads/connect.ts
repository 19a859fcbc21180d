/** The lender's connection to the working gateway. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Fault, messageOf } from '../../../../core/errors.ts'
import { http } from '../../../../core/http/node-http.ts'
import type { Route } from '../forward.ts'
import { FORWARDED, openSigner } from '../proof.ts'
import { PROTOCOL, SIGNED_METHOD, targetOf } from './protocol.ts'
import { secureAsLender } from './secure.ts'

/** The address of the working gateway, and the key that authenticates this one. */
export type LenderRoute = Pick<Route, 'tenure' | 'key' | 'urls'>

const CONNECT_MS = 5_000

/**
 * Returns a function that connects a lender of this version. It throws `conflict` if the working gateway has another version, and
 * `unavailable` if it cannot be reached or accepts no threads.
 */
export function openConnector(version: string): (route: LenderRoute, signal: AbortSignal) => Promise<Duplex> {
	const sign = openSigner()
	return async ({ tenure, key, urls: { main } }, signal) => {
		const target = targetOf(version)
		const request = http.request({
			host: main.hostname.replaceAll(/[[\]]/g, ''),
			port: main.port,
			path: target,
			agent: false,
			signal,
			timeout: CONNECT_MS,
			headers: {
				connection: 'Upgrade',
				upgrade: PROTOCOL,
				[FORWARDED]: sign(key, tenure, {}, { address: 'main', method: SIGNED_METHOD, target }),
			},
		})
		request.on('timeout', () => request.destroy(new Error(`it did not answer within ${CONNECT_MS / 1000} s`)))
		request.on('response', (answer: IncomingMessage) => void refuse(answer).then((why) => request.destroy(why)))
		request.end()
		try {
			const [, socket, head] = (await once(request, 'upgrade')) as [
				IncomingMessage,
				Duplex & { setTimeout(ms: number): void },
				Buffer,
			]
			socket.setTimeout(0)
			return await secureAsLender(socket, head, { key, tenure })
		} catch (error) {
			throw error instanceof Fault ? error : new Fault('unavailable', messageOf(error), { cause: error })
		}
	}
}

/** Why the working gateway refused the connection. */
async function refuse(answer: IncomingMessage): Promise<Fault> {
	answer.resume()
	const isVersion = answer.statusCode === 409 || answer.statusCode === 404
	const why = isVersion
		? 'it has another version'
		: `it answered with ${answer.statusCode}: it is not the working gateway, or its version accepts no threads`
	return new Fault(isVersion ? 'conflict' : 'unavailable', why)
}

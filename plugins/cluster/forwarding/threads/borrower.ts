/** At the working gateway: adds the threads that waiting gateways lend to the run pool. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { messageOf } from '../../../../core/errors.ts'
import { answerSocket } from '../../../../core/http/raw-answer.ts'
import type { Logger } from '../../../../core/log/log.ts'
import type { RunPool } from '../../../../core/runs/run-pool.ts'
import { valueOf } from '../headers.ts'
import { FORWARDED, openVerifier } from '../proof.ts'
import type { Secret } from '../proof.ts'
import { refusal } from '../refuse.ts'
import { openLink } from './link.ts'
import type { LinkLimits, ThreadLink } from './link.ts'
import { MAX_RUNS_PER_THREAD, MAX_THREADS, PROTOCOL, SIGNED_METHOD, targetOf } from './protocol.ts'
import type { FromBorrower, FromLender, Hello } from './protocol.ts'
import { RemoteThreads } from './remote-threads.ts'
import { secureAsBorrower } from './secure.ts'

export interface BorrowerOptions {
	/** The id of this gateway's tenure. */
	tenure: string
	version: string
	/** Null until it is known. */
	secret(): Secret | null
	pool: Pick<RunPool, 'addRemote'>
	log: Pick<Logger, 'info' | 'debug'>
	limits?: LinkLimits
}

export type Borrower = ReturnType<typeof openBorrower>

const MAX_LENDERS = 64
const HELLO_MS = 5_000
const NAME_CHARACTERS = 256
const unproven = 'a gateway that lends threads must prove that it currently belongs to the cluster; connect again'

export function openBorrower({ tenure, version, secret, pool, log, limits }: BorrowerOptions) {
	const verify = openVerifier()
	const links = new Set<{ end(reason: string): void }>()
	/** Connections whose handshake is in progress. */
	let connecting = 0
	let isClosed = false

	const accept = async (socket: Duplex, head: Buffer, key: Secret['key']): Promise<void> => {
		connecting++
		const secured = await secureAsBorrower(socket, head, { key, tenure }).finally(() => connecting--)
		let threads: RemoteThreads | undefined
		const link: ThreadLink<FromBorrower> = openLink(secured, {
			receive(message) {
				if (threads) return threads.receive(message as FromLender)
				const hello = parseHello(message as FromLender)
				clearTimeout(late)
				threads = pool.addRemote(
					hello.runs_per_thread,
					(places, events) => new RemoteThreads({ ...hello, link }, places, events),
				)
				log.info(`the gateway ${hello.name} lends its threads: ${hello.threads}`)
			},
			drained: () => threads?.ready(),
			ended(reason) {
				clearTimeout(late)
				links.delete(link)
				threads?.close(reason)
				if (threads) log.info(`the gateway ${threads.name} no longer lends its threads: ${reason}`)
			},
			...(limits && { limits }),
		})
		links.add(link)
		const late = setTimeout(() => link.end(`it did not send a hello within ${HELLO_MS / 1000} s`), HELLO_MS)
		if (isClosed) link.end('this gateway stops')
	}

	return {
		/** Handles a lender's connection; returns false for any other request. */
		upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
			if (request.headers.upgrade?.toLowerCase() !== PROTOCOL) return false
			const { rawHeaders, url: target = '' } = request
			const key = secret()?.key
			const proof = valueOf(rawHeaders, FORWARDED)
			const isProven = key && proof && verify(key, tenure, proof, { address: 'main', method: SIGNED_METHOD, target })
			if (!isProven || isClosed || links.size + connecting >= MAX_LENDERS)
				answerSocket(socket, 503, ...refusal(unproven))
			else if (target !== targetOf(version)) {
				const message = `this gateway has version ${version}, and accepts only threads of the same version`
				answerSocket(socket, 409, { statusCode: 409, error: 'Conflict', code: 'conflict', message }, {})
			} else {
				socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PROTOCOL}\r\n\r\n`)
				accept(socket, head, key).catch((error: unknown) => {
					socket.destroy()
					log.debug(`a gateway that lends threads could not be connected: ${messageOf(error)}`)
				})
			}
			return true
		},
		/** Ends all links, and accepts no more. */
		close(): void {
			isClosed = true
			for (const link of links) link.end('this gateway stops')
		},
	}
}

/** Throws unless the message is a valid hello. */
function parseHello(message: FromLender): Hello {
	const isCount = (count: unknown, most: number): boolean =>
		Number.isInteger(count) && Number(count) >= 1 && Number(count) <= most
	if (
		message?.kind !== 'hello' ||
		typeof message.name !== 'string' ||
		message.name.length > NAME_CHARACTERS ||
		!isCount(message.threads, MAX_THREADS) ||
		!isCount(message.runs_per_thread, MAX_RUNS_PER_THREAD)
	)
		throw new TypeError('its first message is not a valid hello')
	return message
}

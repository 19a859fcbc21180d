/** The connection to the cluster, with JetStream's API. No other file uses NATS directly. */
import { readFileSync } from 'node:fs'
import { connect, credsAuthenticator, headers as newHeaders, NoRespondersError } from '@nats-io/transport-node'
import type { Msg, MsgHdrs, NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault, messageOf } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log/log.ts'
import { within } from '../../../core/util/deadline.ts'
import { tryLater } from '../../shared/try-later.ts'
import { serverProblem } from './server-check.ts'

export interface ClientOptions {
	/** `nats://` or `tls://` addresses, separated by commas. */
	url: string
	/** A file of NATS credentials (`.creds`). */
	credentials_file?: string | null | undefined
	/** Files for TLS; with any of them the connection must be encrypted. */
	tls?: Partial<Record<'ca_file' | 'cert_file' | 'key_file', string | null>> | undefined
	log?: Logger | undefined
}

/** The error in an answer of JetStream's API. */
export interface ApiError {
	code: number
	err_code?: number
	description?: string
}

/** The cluster's own description of an error. */
export function textOfError({ code, description }: ApiError): string {
	return description ?? String(code)
}

/** Whether no stream accepts messages of a subject, or its stream has no leader. */
export function hasNoResponder(error: unknown): boolean {
	return /no responders/i.test(messageOf(error))
}

export type Answer<T> = T & { error?: ApiError }

/** A message as it is stored in a stream. */
export interface Stored {
	subject: string
	seq: number
	data: Buffer
	/** Milliseconds since 1970, by the server's clock. */
	time: number
}

export interface Client {
	/** One request and its answer. Throws the errors of the NATS client: a timeout, no responders, a closed connection. */
	ask(subject: string, data: Uint8Array | string, headers?: Headers, timeoutMs?: number): Promise<Msg>
	/** Answers each request to this subject until the connection ends. */
	respond(subject: string, answer: () => string): void
	/** The answers of all responders to one request, as they arrive within `ms`. Throws `unavailable` if the cluster cannot be asked. */
	askAll<T>(subject: string, ms: number): Promise<T[]>
	/** Sends without an answer. */
	send(subject: string, data: Uint8Array, headers: Headers): void
	/**
	 * Calls JetStream's API, and retries for at most 12 s until the cluster answers: then throws `unavailable`. A refusal is
	 * returned, with the reason in `error`.
	 */
	api<T>(name: string, body?: unknown): Promise<Answer<T>>
	/** The messages of one direct read of a batch, in the order of the stream. May come from a server that is behind the leader. */
	direct(stream: string, body: { batch: number }): Promise<Stored[]>
	/** The last message of a subject with its headers as text, as the leader has it; undefined for a subject without messages. */
	last(stream: string, subject: string): Promise<(Stored & { headers: string }) | undefined>
	/** Null while connected; otherwise the reason. */
	trouble(): string | null
	/** The server to which this client is connected. */
	serverName(): string
	/** `host:port` of each known server. */
	servers(): string[]
	close(): Promise<void>
}

export type Headers = Readonly<Record<string, string | number>>

/** Timeout of one attempt. */
const ANSWER_MS = 2_500
/** How long a call is retried: longer than the cluster needs to elect a new leader. */
export const PATIENCE_MS = 12_000
const RETRY_MS = 250
/** The client detects that a server is gone after two of these. */
const PING_MS = 5_000
const RETRY_AFTER_S = 2
export const STREAM_NOT_FOUND = 10059
/** JetStream has no leader, is starting, or is electing the stream's leader. */
const BUSY = new Set([503, 408])

/** A temporary failure of the cluster: 503 with `Retry-After`. */
export function unreachable(message: string, cause?: unknown): Fault {
	return tryLater('unavailable', message, RETRY_AFTER_S, cause)
}

/**
 * Connects, and stays connected to one of the servers. Throws `unavailable` if none answers, if the credentials are refused,
 * or if a server is unsuitable. Checks the server again after each reconnection.
 */
export async function openClient(options: ClientOptions): Promise<Client> {
	const nc = await connectTo(options)
	let trouble = serverProblem(nc.info)
	if (trouble !== null) {
		await nc.close()
		throw new Fault('unavailable', trouble)
	}
	void follow(nc, (text) => (trouble = text), options.log)

	const ask: Client['ask'] = (subject, data, headers, timeout = ANSWER_MS) =>
		nc.request(subject, data, { timeout, ...(headers && { headers: headersOf(headers) }) })

	/** Retries until an attempt succeeds with an answer other than that JetStream is busy. */
	const untilAnswered = async <T>(
		attempt: () => Promise<T>,
		isBusy: (answer: T) => boolean = () => false,
	): Promise<T> => {
		const end = performance.now() + PATIENCE_MS
		for (;;) {
			try {
				const answer = await attempt()
				if (!isBusy(answer) || performance.now() > end) return answer
			} catch (error) {
				if (nc.isClosed()) throw new Fault('unavailable', 'the store is closed', { cause: error })
				if (performance.now() > end)
					throw unreachable(`the cluster does not answer: ${trouble ?? messageOf(error)}`, error)
			}
			await pause(RETRY_MS)
		}
	}

	const api = <T>(name: string, body?: unknown): Promise<Answer<T>> =>
		untilAnswered(
			async () => (await ask(`$JS.API.${name}`, body === undefined ? '' : JSON.stringify(body))).json<Answer<T>>(),
			({ error }) => error !== undefined && BUSY.has(error.code),
		)

	return {
		ask,
		respond(subject, answer) {
			nc.subscribe(subject, { callback: (error, message) => void (error ?? message.respond(answer())) })
		},
		async askAll<T>(subject: string, ms: number) {
			const found: T[] = []
			try {
				for await (const message of await nc.requestMany(subject, '', { strategy: 'timer', maxWait: ms }))
					found.push(message.json<T>())
			} catch (error) {
				if (!(error instanceof NoRespondersError))
					throw unreachable(`the cluster does not answer: ${messageOf(error)}`, error)
			}
			return found
		},
		send: (subject, data, headers) => nc.publish(subject, data, { headers: headersOf(headers) }),
		api,
		direct: (stream, body) => untilAnswered(() => readDirect(nc, `$JS.API.DIRECT.GET.${stream}`, body)),
		async last(stream, subject) {
			const { message, error } = await api<{ message: RawMessage }>(`STREAM.MSG.GET.${stream}`, {
				last_by_subj: subject,
			})
			if (!error) return storedOf(message)
			if (error.code === 404 && error.err_code !== STREAM_NOT_FOUND) return undefined
			throw unreachable(`the cluster cannot read: ${textOfError(error)}`)
		},
		trouble: () => (nc.isClosed() ? 'the connection to the cluster is closed' : trouble),
		serverName: () => nc.info?.server_name ?? '',
		servers: () => [
			...new Set([...addressesIn(options.url).map(({ host }) => host), ...(nc.info?.connect_urls ?? [])]),
		],
		close: () => nc.close(),
	}
}

function addressesIn(url: string): URL[] {
	return url.split(',').map((one) => new URL(one.trim()))
}

async function connectTo(options: ClientOptions): Promise<NatsConnection> {
	const hosts = addressesIn(options.url).map(({ host }) => host)
	try {
		return await within(PATIENCE_MS, 'the cluster', connect(connectOptions(options)))
	} catch (error) {
		throw new Fault(
			'unavailable',
			`no server of the cluster can be used (${hosts.join(', ')}): ${messageOf(error)}; ${hintFor(messageOf(error))}`,
			{ cause: error },
		)
	}
}

/** What to change if no server accepts the connection. */
function hintFor(message: string): string {
	if (/authori[sz]ation|authentication/i.test(message))
		return 'check the user and the password in the first address of store.url, or store.credentials_file'
	if (/certificate|self-signed|ssl|tls/i.test(message) && !/exist/.test(message))
		return "check store.tls: ca_file must contain the certificate of the authority that signed the servers' certificates"
	if (/exist|no such file|permission denied|credentials/i.test(message))
		return 'check store.credentials_file and store.tls'
	return 'check store.url and that the servers run'
}

function connectOptions({ url, credentials_file, tls = {} }: ClientOptions): NodeConnectionOptions {
	const addresses = addressesIn(url)
	const first = addresses[0] as URL
	const isEncrypted = first.protocol === 'tls:' || Object.values(tls).some((file) => file)
	return {
		name: 'svc gateway',
		servers: addresses.map(({ host }) => host),
		...(first.username && { user: decodeURIComponent(first.username), pass: decodeURIComponent(first.password) }),
		...(credentials_file && { authenticator: credsAuthenticator(readFileSync(credentials_file)) }),
		...(isEncrypted && {
			tls: {
				...(tls.ca_file && { caFile: tls.ca_file }),
				...(tls.cert_file && { certFile: tls.cert_file }),
				...(tls.key_file && { keyFile: tls.key_file }),
			},
		}),
		maxReconnectAttempts: -1,
		reconnectTimeWait: RETRY_MS,
		pingInterval: PING_MS,
		maxPingOut: 2,
		timeout: ANSWER_MS,
	}
}

/** Reports why the cluster cannot be reached, and null once it can be. Ends with the connection. */
async function follow(nc: NatsConnection, tell: (trouble: string | null) => void, log?: Logger): Promise<void> {
	for await (const { type } of nc.status()) {
		if (type === 'disconnect') {
			tell('no server of the cluster is connected')
			log?.warn('the connection to the cluster was lost; it is retried until it is back')
		} else if (type === 'reconnect') {
			const problem = serverProblem(nc.info)
			tell(problem)
			if (problem === null) log?.info({ server: nc.info?.server_name }, 'connected to the cluster again')
			else {
				log?.error(problem)
				await nc.reconnect() // another server may be suitable
			}
		}
	}
}

interface RawMessage {
	subject: string
	seq: number
	data?: string
	hdrs?: string
	time: string
}

function storedOf({ subject, seq, data = '', hdrs = '', time }: RawMessage): Stored & { headers: string } {
	const headers = Buffer.from(hdrs, 'base64').toString('utf8')
	return { subject, seq, data: Buffer.from(data, 'base64'), headers, time: Date.parse(time) }
}

/** The answers end with status 204; an empty result has status 404. */
async function readDirect(nc: NatsConnection, subject: string, body: unknown): Promise<Stored[]> {
	const found: Stored[] = []
	const { promise, resolve, reject } = Promise.withResolvers<void>()
	const inbox = `_INBOX.svc.${crypto.randomUUID()}`
	const subscription = nc.subscribe(inbox, {
		callback(error, message) {
			const code = message.headers?.code ?? 0
			if (error) reject(error)
			else if (code === 204 || code === 404) resolve()
			else if (code >= 300) reject(new Error(`${code} ${message.headers?.description ?? ''}`))
			else if (message.data.length === 0 && !message.headers?.has('Nats-Sequence')) reject(new Error('no responders'))
			else {
				found.push(directOf(message))
				timer.refresh()
			}
		},
	})
	const timer = setTimeout(() => reject(new Error('the answer is late')), ANSWER_MS)
	try {
		nc.publish(subject, JSON.stringify(body), { reply: inbox })
		await promise
		return found
	} finally {
		clearTimeout(timer)
		subscription.unsubscribe()
	}
}

function directOf(message: Msg): Stored {
	const headers = message.headers as MsgHdrs
	return {
		subject: headers.get('Nats-Subject'),
		seq: Number(headers.get('Nats-Sequence')),
		data: Buffer.from(message.data),
		time: Date.parse(headers.get('Nats-Time-Stamp')),
	}
}

function headersOf(wanted: Headers): MsgHdrs {
	const headers = newHeaders()
	for (const [name, value] of Object.entries(wanted)) headers.set(name, String(value))
	return headers
}

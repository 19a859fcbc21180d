/** Keeps one channel connected. Reconnects after each loss, until it is stopped or the platform refuses. */
import { setTimeout as pause } from 'node:timers/promises'
import { Late, within } from '../../core/util/deadline.ts'
import { messageOf } from '../../core/errors.ts'
import { onAbort } from '../../core/util/on-abort.ts'
import type { Connection } from './adapter.ts'
import type { Adapter } from './adapters.ts'
import { openBackoff } from './backoff.ts'
import { readAdapterError } from './dialogue/adapter-values.ts'
import { openLink } from './link.ts'
import type { LinkOptions } from './link.ts'
import { connecting } from './state-events.ts'
import type { ChannelState } from './state-events.ts'

export type Supervisor = ReturnType<typeof supervise>

export interface SupervisorOptions extends Pick<LinkOptions, 'channel' | 'token' | 'log' | 'dialogue' | 'queue'> {
	adapter: Adapter
	retry_max_s: number
	/** Connects only after this has settled. */
	after: Promise<unknown>
	/** Called with each new state. */
	changed(state: ChannelState): void
}

const CONNECT_MS = 60_000
/** Less than a plugin's deadline for a release. */
const CLOSE_MS = 9_500
const NAME_LIMIT = 128
const MESSAGE_LIMIT = 500

export function supervise(options: SupervisorOptions) {
	const { adapter, channel, dialogue, token, log } = options
	const stopping = new AbortController()
	const { signal } = stopping
	/** Without the delays of messages. */
	let own: ChannelState = connecting
	let state: ChannelState = connecting
	/** Messages that could not be sent for some time, with the reason. */
	const delays = new Map<object, string>()
	let current: Connection | undefined
	let wasConnected = false
	let wake: (() => void) | undefined

	const set = (change: Partial<ChannelState>): void => {
		if (signal.aborted) return
		own = { ...own, ...change }
		show()
	}
	const show = (): void => {
		const delay = own.connection === 'connected' ? (delays.values().next().value ?? null) : null
		state = { ...own, last_error: own.last_error ?? delay }
		options.changed(state)
	}

	/** Connects, waits for the end of the connection, and returns why it ended. */
	const connectOnce = async () => {
		const ended = Promise.withResolvers<never>()
		ended.promise.catch(() => {})
		const removeListener = onAbort(signal, () => ended.reject(new Error('the channel is stopped')))
		let isOpen = false
		let since: number | undefined
		const { link, end } = openLink({
			...options,
			status(status, error) {
				if (!isOpen) return
				const last_error = error === null ? null : failureOf(error, token).message
				set({ connection: status, last_error })
				if (status === 'connected') dialogue.connected(channel.id)
			},
			lost(error) {
				isOpen = false
				current = undefined
				end()
				ended.reject(error)
			},
			skipped(why) {
				log.warn(`an invalid message was skipped: ${why}`)
				set({ last_error: `the adapter delivered an invalid message: ${why}`.slice(0, 500) })
			},
		})
		const opening = Promise.try(() => adapter.run(() => adapter.adapter.connect(link))).then((connection) =>
			guarded(checkConnection(connection), adapter.run),
		)
		try {
			const opened = await Promise.race([within(CONNECT_MS, 'the platform', opening), ended.promise])
			isOpen = true
			wasConnected = true
			since = performance.now()
			current = opened
			set({ connection: 'connected', bot: nameOf(opened), last_error: null })
			dialogue.connected(channel.id)
			return await ended.promise
		} catch (error) {
			isOpen = false
			const connected_ms = since === undefined ? 0 : performance.now() - since
			return { ...failureOf(error, token), connected_ms }
		} finally {
			end()
			current = undefined
			removeListener()
			// Also closes a connection that opens too late, so that it does not stay open beside its successor.
			const closing = opening.then(
				(connection) => connection.close(),
				() => {},
			)
			await within(CLOSE_MS, 'close()', closing).catch((error: unknown) => {
				if (error instanceof Late) log.warn('a connection was not closed in time and was abandoned')
				else log.warn(`a connection failed to close: ${failureOf(error, token).message}`)
			})
		}
	}

	const run = async (): Promise<void> => {
		await options.after
		const backoff = openBackoff(options.retry_max_s * 1_000)
		while (!signal.aborted) {
			const { message, refused, retry_after_ms, connected_ms } = await connectOnce()
			if (signal.aborted) return
			if (refused) {
				set({ connection: 'error', last_error: message })
				await new Promise<void>((resolve) => (wake = resolve))
				backoff.reset()
				set({ connection: 'connecting' })
			} else {
				set({ connection: wasConnected ? 'reconnecting' : 'connecting', last_error: message })
				const delay = backoff.next(connected_ms, retry_after_ms)
				await pause(delay, undefined, { signal, ref: false }).catch(() => {})
			}
		}
	}
	const finished = run().catch((error: unknown) => {
		log.error({ err: error }, 'a channel is no longer kept connected; change it, or restart the gateway')
		set({ connection: 'error', last_error: messageOf(error) })
	})

	return {
		get state() {
			return state
		},
		/** Undefined while it is not connected. */
		connection: (): Connection | undefined => (state.connection === 'connected' ? current : undefined),
		/** A message cannot be sent for some time: `last_error` shows why, until the same message is reported with null. */
		delayed(message: object, why: string | null): void {
			if (why === null) delays.delete(message)
			else delays.set(message, `messages are delayed: ${failureOf(new Error(why), token).message}`)
			if (!signal.aborted) show()
		},
		/** Connects again if the platform has refused. Otherwise does nothing. */
		retryRefused(): void {
			if (state.connection === 'error') wake?.()
		},
		/** Ends the connection. Settles once it is closed, within 10 s. */
		stop(): Promise<void> {
			stopping.abort()
			wake?.()
			return finished
		},
	}
}

function checkConnection(connection: unknown): Connection {
	const { send, close } = Object(connection) as Partial<Connection>
	if (typeof send === 'function' && typeof close === 'function') return connection as Connection
	throw new Error('connect() of the adapter must return a connection with send() and close()')
}

/** The same connection, with every call made through `run`, which attributes its errors to the plugin. */
function guarded(connection: Connection, run: Adapter['run']): Connection {
	const { edit, draft, typing, load, mark, find, sendFile, findFile } = connection
	return {
		get name() {
			return connection.name as string
		},
		send: (message) => run(() => connection.send(message)),
		...(edit && { edit: (id, message) => run(() => edit.call(connection, id, message)) }),
		...(draft && { draft: (message) => run(() => draft.call(connection, message)) }),
		...(sendFile && { sendFile: (file, bytes) => run(() => sendFile.call(connection, file, bytes)) }),
		...(findFile && { findFile: (file, mark) => run(() => findFile.call(connection, file, mark)) }),
		...(typing && { typing: (chat) => run(() => typing.call(connection, chat)) }),
		...(load && { load: (ref, options) => run(() => load.call(connection, ref, options)) }),
		...(mark && { mark: (chat) => run(() => mark.call(connection, chat)) }),
		...(find && { find: (message, mark) => run(() => find.call(connection, message, mark)) }),
		close: () => run(() => connection.close()),
	}
}

function nameOf(connection: Connection): string | null {
	try {
		const { name } = connection
		return typeof name === 'string' ? name.slice(0, NAME_LIMIT).toWellFormed() : null
	} catch {
		return null
	}
}

/** Why a connection failed, for operators. Accepts any thrown value. Replaces the token, however short it is. */
export function failureOf(thrown: unknown, token: string) {
	const { code, message, retry_after_ms } = readAdapterError(thrown)
	return {
		message: message.replaceAll(token, '[token]').slice(0, MESSAGE_LIMIT),
		/** Automatic retries cannot succeed. */
		refused: code === 'refused',
		/** The delay that the platform requested. */
		retry_after_ms,
	}
}

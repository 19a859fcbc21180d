/** The connections of all channels. Reconciles them with the stored channels. */
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { SerialQueue } from '../../core/util/serial-queue.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import { adaptersOf } from './adapters.ts'
import type { Adapters } from './adapters.ts'
import type { ChannelSettings } from './contract.ts'
import type { ChannelRecord, Directory } from './directory.ts'
import { connecting, openStateEvents } from './state-events.ts'
import type { ChannelState } from './state-events.ts'
import type { Dialogue, LiveChannel } from './parts.ts'
import { supervise } from './supervisor.ts'
import type { Supervisor } from './supervisor.ts'
import { desiredIn } from './desired.ts'
import type { ConnectionSettings, DesiredConnection } from './desired.ts'

export type Connections = ReturnType<typeof openConnections>

interface ConnectionEntry {
	record: ChannelRecord
	/** The settings of the supervisor. */
	current?: ConnectionSettings
	supervisor?: Supervisor
	/** Settles once the previous supervisor has closed. */
	closed?: Promise<void>
	live?: LiveChannel
	/** The state to show if there is no supervisor. */
	state: ChannelState
	queue: SerialQueue
	report: (state: ChannelState) => void
}

type Select = (channel: ChannelRecord) => boolean

/** Limit of queued incoming messages per channel. */
const WAITING_LIMIT = 1_000
/** Delay before a retry, for failures that no event ends, such as a full disk. */
const RECONCILE_RETRY_MS = 5_000
const TROUBLE_LIMIT = 1_000

export function openConnections(ctx: Context<ChannelSettings>, directory: Directory, dialogue: () => Dialogue) {
	const { config, log, signal } = ctx
	const table = new Map<string, ConnectionEntry>()
	/** Connections being closed, by type and token. No other connection may use the token until they are closed. */
	const closing = new Map<string, Promise<void>>()
	/** Channels deleted during the current reconciliation. */
	const dropped = new Set<string>()

	const entryFor = (record: ChannelRecord): ConnectionEntry => {
		const known = table.get(record.id)
		if (known) return Object.assign(known, { record })
		const { id: channel_id, type } = record
		const entry: ConnectionEntry = {
			record,
			state: connecting,
			queue: openSerialQueue(
				WAITING_LIMIT,
				() => new Fault('channel_unavailable', `${WAITING_LIMIT} messages of this channel are already waiting`),
			),
			report: openStateEvents((event_type, payload, { connection }) => {
				const about = { channel_id, type, ...payload }
				if (event_type === 'channel.connected') log.info(about, 'a channel is connected')
				else if (event_type === 'channel.error') log.warn(about, 'a channel has an error')
				else if (connection === 'connecting') log.info(about, 'a channel connects again after a change')
				else log.warn(about, 'a channel is no longer connected')
				return emitOrLog(ctx, { event_type, payload: about })
			}, signal),
		}
		table.set(channel_id, entry)
		return entry
	}
	const stop = async (entry: ConnectionEntry): Promise<void> => {
		const { supervisor, current, record } = entry
		delete entry.supervisor
		delete entry.current
		if (!supervisor || !current) return
		const claim = claimOf(record.type, current.token)
		const before = closing.get(claim)
		const closed = Promise.all([before, supervisor.stop()]).then(() => {
			if (closing.get(claim) === closed) closing.delete(claim)
		})
		closing.set(claim, closed)
		entry.closed = closed
		await closed
	}
	const disconnect = (entry: ConnectionEntry, state: ChannelState): void => {
		void stop(entry)
		entry.state = state
		entry.report(state)
	}
	const connect = (entry: ConnectionEntry, current: ConnectionSettings, live: LiveChannel): void => {
		const { record } = entry
		const { adapter, token } = current
		entry.current = current
		entry.supervisor = supervise({
			channel: live,
			adapter,
			token,
			log: log.child({ channel_id: record.id, type: record.type }),
			dialogue: dialogue(),
			queue: entry.queue,
			retry_max_s: config.retry_max_s,
			after: Promise.resolve(closing.get(claimOf(record.type, token))),
			changed: (state) => {
				if (entry.live === live) entry.report(state)
			},
		})
		entry.report(entry.supervisor.state)
	}

	const reconcileOnce = async (retries: Select): Promise<void> => {
		dropped.clear()
		const adapters = adaptersOf(ctx.extensions('channel'))
		ctx.trouble(adapters.problems.length > 0 ? adapters.problems.join('; ').slice(0, TROUBLE_LIMIT) : null)
		const found: { record: ChannelRecord; desired: DesiredConnection | undefined }[] = []
		const desiredOf = desiredIn(ctx, adapters, (id) => table.get(id)?.current)
		for (const record of await directory.list()) {
			const desired = await desiredOf(record)
			if (desired && 'blocked' in desired && desired.isTemporary) reconcileLater()
			found.push({ record, desired })
		}
		if (signal.aborted) return

		// No await from here on, so that the decisions are still valid when they take effect.
		const listed = new Set(found.map(({ record }) => record.id))
		for (const id of table.keys()) if (!listed.has(id)) void drop(id)
		const holders = new Map<string, string>()
		const starts: (() => void)[] = []
		const rows = found
			.filter(({ record }) => !dropped.has(record.id))
			.map((one) => ({ ...one, isKept: isSame(table.get(one.record.id)?.current, one.desired) }))
		// If two channels have the same token, the connected one keeps it; otherwise the older one gets it.
		for (const { record, desired, isKept } of rows.toSorted((a, b) => Number(b.isKept) - Number(a.isKept))) {
			const entry = entryFor(record)
			if (!desired) {
				delete entry.live
				disconnect(entry, disabled(record.type))
				continue
			}
			if (isKept && 'token' in desired) {
				holders.set(claimOf(record.type, desired.token), record.id)
				if (retries(record)) entry.supervisor?.retryRefused()
				continue
			}
			void stop(entry)
			const live = liveOf(entry, desired)
			entry.live = live
			if ('blocked' in desired) {
				disconnect(entry, blocked(desired.blocked))
				continue
			}
			const claim = claimOf(record.type, desired.token)
			const holder = holders.get(claim)
			if (holder !== undefined) {
				disconnect(entry, blocked(`channel ${holder} has the same bot token; delete one of the two`))
				continue
			}
			holders.set(claim, record.id)
			starts.push(() => connect(entry, desired, live))
		}
		for (const start of starts) start()
	}

	const queue = openSerialQueue()
	/** The next reconciliation, for all requests until it begins. */
	let next: { retries: Select[]; done: Promise<void> } | undefined
	const reconcileNext = async (retries: readonly Select[]): Promise<void> => {
		next = undefined
		if (signal.aborted) return
		try {
			await reconcileOnce((channel) => retries.some((isSelected) => isSelected(channel)))
		} catch (error) {
			if (signal.aborted) return
			log.error({ err: error }, 'the connections of channels could not be updated; this will be retried')
			reconcileLater()
		}
	}
	const reconcile = (retries: Select = () => false): Promise<void> => {
		if (next) next.retries.push(retries)
		else {
			const all = [retries]
			next = { retries: all, done: queue.run(() => reconcileNext(all)) }
		}
		return next.done
	}
	/** For changes without an event, such as a disk that is no longer full. */
	function reconcileLater(): void {
		clearTimeout(later)
		later = setTimeout(() => void reconcile(), RECONCILE_RETRY_MS).unref()
	}
	let later: NodeJS.Timeout | undefined
	const drop = async (id: string): Promise<void> => {
		dropped.add(id)
		const entry = table.get(id)
		table.delete(id)
		if (!entry) return
		delete entry.live
		await stop(entry)
		await entry.closed
		void reconcile() // another channel may wait for the token
	}

	return {
		adapters: (): Adapters => adaptersOf(ctx.extensions('channel')),
		/**
		 * Opens and closes connections to match the stored channels. Settles once that has started; never throws. `retries` selects
		 * channels that are retried although their platform refused them.
		 */
		reconcile,
		/** Undefined if the channel does not exist, or no running plugin provides its type. */
		live: (id: string): LiveChannel | undefined => table.get(id)?.live,
		stateOf(record: ChannelRecord): ChannelState {
			const entry = table.get(record.id)
			if (entry) return entry.supervisor?.state ?? entry.state
			const isKnown = this.adapters().all.has(record.type)
			return isKnown ? connecting : disabled(record.type)
		},
		/** See `Supervisor.delayed`. */
		delayed(id: string, message: object, why: string | null): void {
			table.get(id)?.supervisor?.delayed(message, why)
		},
		/** Ends the connection of a deleted channel. Settles once it is closed. */
		drop,
		async [Symbol.asyncDispose]() {
			clearTimeout(later)
			await Promise.all([...table.values()].map(stop))
			await Promise.all(closing.values())
		},
	}
}

function liveOf(
	entry: ConnectionEntry,
	{ adapter, config }: Pick<DesiredConnection, 'adapter' | 'config'>,
): LiveChannel {
	const { id, heard_since } = entry.record
	const { type, label, can } = adapter
	const live: LiveChannel = {
		id,
		...(heard_since !== undefined && { heard_since }),
		type,
		label,
		can,
		config,
		connection: () => (entry.live === live ? entry.supervisor?.connection() : undefined),
	}
	return live
}

function isSame(current: ConnectionSettings | undefined, desired: DesiredConnection | undefined): boolean {
	if (!current || !desired || !('token' in desired)) return false
	const { adapter, token, settings } = desired
	return current.adapter === adapter && current.token === token && current.settings === settings
}

function claimOf(type: string, token: string): string {
	return `${type}\n${token}`
}

function blocked(last_error: string): ChannelState {
	return { connection: 'error', bot: null, last_error }
}

function disabled(type: string): ChannelState {
	return { connection: 'disabled', bot: null, last_error: `no running plugin provides the channel type ${type}` }
}

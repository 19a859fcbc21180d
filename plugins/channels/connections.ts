/** The connections of all channels: compares them with the stored channels, and opens or closes what differs. */
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { SerialQueue } from '../../core/util/serial-queue.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import { adaptersOf } from './adapters.ts'
import type { Adapter, Adapters } from './adapters.ts'
import type { ChannelSettings, CommonConfig } from './contract.ts'
import type { ChannelRecord, Directory } from './directory.ts'
import { connecting, openNews } from './news.ts'
import type { ChannelState } from './news.ts'
import type { Dialogue, LiveChannel } from './parts.ts'
import { supervise } from './supervisor.ts'
import type { Supervisor } from './supervisor.ts'
import { wantedIn } from './wanted.ts'
import type { ConnectionSettings, WantedConnection } from './wanted.ts'

export type Connections = ReturnType<typeof openConnections>

type ConnectionContext = Pick<
	Context<ChannelSettings>,
	'use' | 'config' | 'log' | 'signal' | 'emit' | 'extensions' | 'trouble'
>

interface ConnectionEntry {
	record: ChannelRecord
	made?: ConnectionSettings
	supervisor?: Supervisor
	/** Settles once the previous supervisor has closed. */
	closed?: Promise<void>
	live?: LiveChannel
	/** The state shown without a supervisor. */
	state: ChannelState
	queue: SerialQueue
	news: (state: ChannelState) => void
}

/** Messages of a channel that wait to be accepted. */
const WAITING_LIMIT = 1_000
/** Delay after a failed attempt, such as while the disk is full. */
const RECONCILE_AGAIN_MS = 5_000
const TROUBLE_LIMIT = 1_000

export function openConnections(ctx: ConnectionContext, directory: Directory, dialogue: () => Dialogue) {
	const { config, log, signal } = ctx
	const table = new Map<string, ConnectionEntry>()
	/** Connections that are being closed, by type and token: until then no other connection may use the token. */
	const closing = new Map<string, Promise<void>>()
	/** Deleted while a comparison was running. */
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
			news: openNews((event_type, payload) => {
				const about = { channel_id, type, ...payload }
				if (event_type === 'channel.connected') log.info(about, 'a channel is connected')
				else
					log.warn(
						about,
						event_type === 'channel.error' ? 'a channel has an error' : 'a channel is no longer connected',
					)
				return emitOrLog(ctx, { event_type, payload: about })
			}, signal),
		}
		table.set(channel_id, entry)
		return entry
	}
	const stop = async (entry: ConnectionEntry): Promise<void> => {
		const { supervisor, made, record } = entry
		delete entry.supervisor
		delete entry.made
		if (!supervisor || !made) return
		const claim = claimOf(record.type, made.token)
		const before = closing.get(claim)
		const closed = Promise.all([before, supervisor.stop()]).then(() => {
			if (closing.get(claim) === closed) closing.delete(claim)
		})
		closing.set(claim, closed)
		entry.closed = closed
		await closed
	}
	const rest = (entry: ConnectionEntry, state: ChannelState): void => {
		void stop(entry)
		entry.state = state
		entry.news(state)
	}
	const connect = (
		entry: ConnectionEntry,
		adapter: Adapter,
		token: string,
		live: LiveChannel,
		settings: string,
	): void => {
		const { record } = entry
		entry.made = { adapter, token, settings }
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
				if (entry.live === live) entry.news(state)
			},
		})
		entry.news(entry.supervisor.state)
	}

	const reconcileOnce = async (again: (channel: ChannelRecord) => boolean): Promise<void> => {
		dropped.clear()
		const adapters = adaptersOf(ctx.extensions('channel'))
		ctx.trouble(adapters.problems.length > 0 ? adapters.problems.join('; ').slice(0, TROUBLE_LIMIT) : null)
		const found: { record: ChannelRecord; wanted: WantedConnection | undefined }[] = []
		const wantedOf = wantedIn(ctx, adapters, (id) => table.get(id)?.made)
		for (const record of await directory.list()) {
			const wanted = await wantedOf(record)
			if (wanted && 'blocked' in wanted && wanted.passing) reconcileLater()
			found.push({ record, wanted })
		}
		if (signal.aborted) return

		// No await from here on, so that the decisions are still valid when they are applied.
		const listed = new Set(found.map(({ record }) => record.id))
		for (const id of table.keys()) if (!listed.has(id)) void drop(id)
		const holders = new Map<string, string>()
		const todo: (() => void)[] = []
		const rows = found
			.filter(({ record }) => !dropped.has(record.id))
			.map(({ record, wanted }) => {
				const settings = JSON.stringify(record.config)
				const made = table.get(record.id)?.made
				const isKept =
					made !== undefined &&
					wanted !== undefined &&
					'token' in wanted &&
					made.adapter === wanted.adapter &&
					made.token === wanted.token &&
					made.settings === settings
				return { record, wanted, settings, isKept }
			})
		// Of two channels with one token, the connected one keeps it; otherwise the older one gets it.
		for (const { record, wanted, settings, isKept } of rows.toSorted((a, b) => Number(b.isKept) - Number(a.isKept))) {
			const entry = entryFor(record)
			if (!wanted) {
				delete entry.live
				rest(entry, disabled(record.type))
				continue
			}
			const { adapter } = wanted
			if (isKept && 'token' in wanted) {
				holders.set(claimOf(record.type, wanted.token), record.id)
				if (again(record)) entry.supervisor?.again()
				continue
			}
			void stop(entry)
			const live = liveOf(entry, adapter, wanted.config)
			entry.live = live
			if ('blocked' in wanted) {
				rest(entry, blocked(wanted.blocked))
				continue
			}
			const claim = claimOf(record.type, wanted.token)
			const holder = holders.get(claim)
			if (holder !== undefined) {
				rest(entry, blocked(`channel ${holder} has the same bot token; delete one of the two`))
				continue
			}
			holders.set(claim, record.id)
			todo.push(() => connect(entry, adapter, wanted.token, live, settings))
		}
		for (const start of todo) start()
	}

	let isBusy = false
	let asked: { again?: (channel: ChannelRecord) => boolean; done: () => void }[] = []
	const reconcileWhileAsked = async (): Promise<void> => {
		isBusy = true
		while (asked.length > 0) {
			const now = asked
			asked = []
			try {
				if (!signal.aborted) await reconcileOnce((channel) => now.some(({ again }) => again?.(channel)))
			} catch (error) {
				if (!signal.aborted)
					log.error({ err: error }, 'the connections of channels could not be updated; this will be retried')
				reconcileLater()
			}
			for (const { done } of now) done()
		}
		isBusy = false
	}
	const reconcile = (again?: (channel: ChannelRecord) => boolean): Promise<void> =>
		new Promise((done) => {
			asked.push({ ...(again && { again }), done })
			if (!isBusy) void reconcileWhileAsked()
		})
	/** For changes without an event, such as a disk that is no longer full. */
	function reconcileLater(): void {
		clearTimeout(later)
		later = setTimeout(() => void reconcile(), RECONCILE_AGAIN_MS).unref()
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
		void reconcile() // another channel may have waited for its token
	}

	return {
		adapters: (): Adapters => adaptersOf(ctx.extensions('channel')),
		/**
		 * Opens and closes connections to match the stored channels. Settles once that has started, and never throws. `again`:
		 * selects channels that are tried again although their platform refused them.
		 */
		reconcile,
		/** Undefined if it does not exist, or no running plugin has its type. */
		live: (id: string): LiveChannel | undefined => table.get(id)?.live,
		stateOf(record: ChannelRecord): ChannelState {
			const entry = table.get(record.id)
			if (entry) return entry.supervisor?.state ?? entry.state
			const isKnown = this.adapters().all.has(record.type)
			return isKnown ? connecting : disabled(record.type)
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

function liveOf(entry: ConnectionEntry, { type, label, can }: Adapter, config: CommonConfig): LiveChannel {
	const { id, heard_since } = entry.record
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

function claimOf(type: string, token: string): string {
	return `${type}\n${token}`
}

function blocked(last_error: string): ChannelState {
	return { connection: 'error', bot: null, last_error }
}

function disabled(type: string): ChannelState {
	return { connection: 'disabled', bot: null, last_error: `no running plugin has channels of the type ${type}` }
}

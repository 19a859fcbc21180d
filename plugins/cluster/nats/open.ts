import { setTimeout as pause } from 'node:timers/promises'
import { Fault, messageOf } from '../../../core/errors.ts'
import { decodeValue } from '../../../core/store/codec.ts'
import { openDispatcher } from '../../../core/store/dispatcher.ts'
import { format, formatSince, mustBeReadable } from '../../../core/store/format.ts'
import type { FormatMark } from '../../../core/store/format.ts'
import { joinKey } from '../../../core/store/keys.ts'
import type { ClusterMember, DataFormat, Engine, ObservedLease, Store } from '../../../core/store/ports.ts'
import { mayUpgrade } from '../may-upgrade.ts'
import { openClient } from './client.ts'
import type { Client, ClientOptions } from './client.ts'
import { emptiedBefore, watchLog } from './emptied.ts'
import { KeyIndex } from './key-index.ts'
import { takeLease } from './lease.ts'
import type { Lease, LeaseTimes } from './lease.ts'
import { openOrderedWriter } from './ordered-writer.ts'
import { loadKeys } from './load-keys.ts'
import { openEventLog } from './log.ts'
import { openLogSource } from './log-source.ts'
import { isRecordSubject, positionAt, recordOf } from './log-record.ts'
import { openStoredQueue } from './queue.ts'
import { ownName } from '../../../core/util/own-name.ts'
import { version } from '../../../core/version.ts'
import { answerDiscovery, discoverGateways } from './discovery.ts'
import { messagesUntil } from './read-stream.ts'
import { openRecent } from './recent.ts'
import type { Recent } from './recent.ts'
import { openSpace } from './space.ts'
import { openRecords } from './records.ts'
import { infoOf, makeStreams, namesOf, rootAndKeyOf, token } from './streams.ts'
import type { Names } from './streams.ts'

export interface NatsOptions extends ClientOptions {
	/** The prefix of streams and subjects: letters, digits, `-` and `_`. */
	prefix: string
	/** Copies of each stream. */
	replicas: number
	/** Ends the wait for the lease; then `openNats` throws. */
	signal?: AbortSignal | undefined
	/** As `LeaseOptions.onLeaseObserved`. */
	onLeaseObserved?: ((found: ObservedLease | null) => void | Promise<void>) | undefined
	/** `store.format`. Default null. */
	wantedFormat?: number | null | undefined
	/** Identifies the home whose lock this process holds. */
	home?: string | undefined
	/** For tests. */
	times?: LeaseTimes | undefined
	/** For tests: as `RecordsOptions.deletedTtlS`. */
	deletedTtlS?: number | undefined
}

export type NatsEngine = Engine & Required<Pick<Engine, 'lost' | 'remote' | 'tenure' | 'members' | 'mayUpgrade'>>

const formatKey = ['meta', 'format'] as const
const STOP_POLL_MS = 100
/** The newest messages that are read at the start. */
const RECENT = 512

/**
 * Opens the data in the cluster, once no other gateway works on it. Throws `unavailable`, with what to do, if the cluster cannot be
 * reached or used.
 */
export async function openNats(options: NatsOptions): Promise<NatsEngine> {
	const { prefix, replicas } = options
	const names = namesOf(prefix)
	const client = await openClient(options)
	let lease: Lease | undefined
	try {
		await makeStreams(client, names, replicas)
		// Before the lease: a gateway that is too old would take it repeatedly under a supervisor that restarts it.
		const stored = await storedMark(client, names)
		if (stored) mustBeReadable(stored, placeOf(names))
		answerDiscovery(client, names, () => ({ name: ownName, version, format, works: lease !== undefined }))
		lease = await takeLease({ ...options, client, names, holder: ownName })
		return await opened(client, names, lease, options)
	} catch (error) {
		await lease?.release()
		await client.close()
		throw error
	}
}

async function opened(
	client: Client,
	names: Names,
	lease: Lease,
	{ log, deletedTtlS, wantedFormat = null }: NatsOptions,
): Promise<NatsEngine> {
	await passBarrier(client, names, lease)
	const roots = { records: `${names.prefix}.kv.r.0`, internal: internalRoot(names) }
	const indexes: Record<string, KeyIndex> = { [roots.records]: new KeyIndex(), [roots.internal]: new KeyIndex() }
	await loadKeys(client, names, indexes)
	const state = await infoOf(client, names.state)
	const events = await infoOf(client, names.events)

	const space = openSpace(client, barrierOf(names, lease))
	const place = { client, prefix: names.prefix, lease, space }
	const stateWriter = openOrderedWriter({
		...place,
		stream: names.state,
		last: state.state.last_seq,
		replaces: true,
		// A missing key may still have a recent message without a body; the cluster then refuses position 0 and reports the real one.
		lastOf(subject) {
			const [root, key] = rootAndKeyOf(subject)
			const seq = indexes[root]?.get(key)
			return seq === undefined ? 0 : seq < 0 ? undefined : seq
		},
	})
	const eventWriter = openOrderedWriter({ ...place, stream: names.events, last: events.state.last_seq })
	const recordsUnder = (root: string) =>
		openRecords({
			client,
			stream: names.state,
			root,
			writer: stateWriter,
			index: indexes[root] as KeyIndex,
			lease,
			deletedTtlS,
			log,
		})
	const records = recordsUnder(roots.records)
	const internal = recordsUnder(roots.internal)
	const newest = await newestOf(client, names)
	const recent = await recentOf(client, names, newest, log)
	// The newest messages may be those of another program.
	const last = recent.records().at(-1)
	const head = last ? positionAt(last.seq, recordOf(names.events, last).entries.length - 1) : positionAt(newest, 0)
	const source = openLogSource(client, names, recent, () => events.state.first_seq)
	const eventLog = openEventLog({
		client,
		names,
		source,
		writer: eventWriter,
		lease,
		records,
		recent,
		head,
		log,
	})
	const has = { log: head > 0, state: (await internal.get(formatKey)) !== undefined }
	const gone = await emptiedBefore(internal, names, has)
	if (gone) throw gone
	let mark = await markOf(internal, names)
	const checkLog = watchLog(client, names, internal, () => eventLog.kept())
	let leader = state.cluster?.leader ?? client.serverName()
	lease.onRenewed((seq) => {
		stateWriter.passed(seq)
		const look = async (): Promise<void> => {
			leader = (await infoOf(client, names.state)).cluster?.leader ?? client.serverName()
			const probe = await space.check()
			if (probe !== undefined) eventWriter.passed(probe)
			const lost = await checkLog()
			if (lost) lease.lose(lost.message)
		}
		look().catch(() => {})
	})
	const stored = await openStoredQueue(internal, (work) => {
		stateWriter.after(work)
		eventWriter.after(work)
	})
	const dispatcher = openDispatcher(stored.backing, stored.recovered, log)
	const data: DataFormat = {
		mark: () => mark,
		async change(next) {
			await internal.put(formatKey, next)
			mark = next
		},
	}
	const members = (): Promise<ClusterMember[]> => discoverGateways(client, names)
	let isClosed = false
	return {
		store: records,
		log: eventLog,
		queue: dispatcher.queue,
		snapshots: {
			size: () => 0,
			async take() {
				throw new Fault(
					'unavailable',
					'the data is in the cluster: copy it with the tools of NATS ("nats stream backup")',
				)
			},
		},
		contents: {
			async *scopes() {
				yield* indexes[roots.records]?.scopes() ?? []
			},
			appends: () => source.forwards(1),
			async *jobs() {
				yield* stored.jobs()
			},
		},
		trouble: () => lease.trouble() ?? space.trouble(),
		format: data,
		mayUpgrade: () => mayUpgrade({ data, wanted: wantedFormat, members, log }),
		lost: lease.lost,
		tenure: lease.tenure,
		members,
		remote: () => ({
			engine: 'nats',
			title: 'NATS',
			servers: client.servers(),
			leader: client.trouble() === null ? leader : null,
		}),
		async [Symbol.asyncDispose]() {
			if (isClosed) return
			isClosed = true
			dispatcher.close()
			const isIdle = Promise.all([stateWriter.idle(), eventWriter.idle()]).then(() => true)
			// Writes are retried until they succeed, and the servers may never return.
			while (lease.trouble() === null && !(await Promise.race([isIdle, pause(STOP_POLL_MS, false)])));
			await lease.release()
			await client.close()
		},
	}
}

/** The subject of messages without an event in the log. */
function barrierOf({ prefix }: Names, { epoch }: Lease): string {
	return `${prefix}.w.${epoch}.ev.b`
}

/** Stores a message after everything that was accepted from an earlier holder, so that later reads contain all of it. */
async function passBarrier(client: Client, names: Names, lease: Lease): Promise<void> {
	const subject = barrierOf(names, lease)
	for (let attempt = 1; ; attempt++) {
		try {
			const { error } = (await client.ask(subject, '', { 'Nats-TTL': '1s' })).json<{
				error?: { description: string }
			}>()
			if (!error) return
			if (attempt === 3) throw new Error(error.description)
		} catch (error) {
			if (attempt === 3)
				throw new Fault('unavailable', `the cluster accepts no events: ${messageOf(error)}`, { cause: error })
			await lease.reassert()
		}
	}
}

async function recentOf(client: Client, names: Names, last: number, log: NatsOptions['log']): Promise<Recent> {
	const from = Math.max(1, last - RECENT + 1)
	const recent = openRecent(from)
	if (last === 0) return recent
	for await (const { subject, seq, data } of messagesUntil(client, names.events, { seq: from }, last)) {
		if (isRecordSubject(names, subject)) recent.add({ seq, run: recordOf(names.events, { seq, data }).run, data })
		else if (data.length > 0)
			log?.warn(`the message ${seq} of the stream ${names.events} was skipped: no gateway writes to ${subject}`)
	}
	return recent
}

/** The position of the newest message under the subjects of records; 0 for none. */
async function newestOf(client: Client, names: Names): Promise<number> {
	const subjects = [`${names.prefix}.ev.0.>`, `${names.prefix}.ev.g.>`]
	const found = await Promise.all(subjects.map((subject) => client.last(names.events, subject)))
	return Math.max(0, ...found.map((one) => one?.seq ?? 0))
}

/** Reads the format, or marks a new installation with the current one. Refuses a format that this program cannot read. */
async function markOf(internal: Store, names: Names): Promise<FormatMark> {
	const found = await internal.get<FormatMark>(formatKey)
	if (found) {
		mustBeReadable(found.value, placeOf(names))
		return found.value
	}
	const mark = { format, since: formatSince }
	await internal.put(formatKey, mark)
	return mark
}

/** Reads the format from the leader, without the lease; undefined before the first start. */
export async function storedMark(client: Client, names: Names): Promise<FormatMark | undefined> {
	const found = await client.last(names.state, `${internalRoot(names)}.${token(joinKey(formatKey))}`)
	return found && found.data.length > 0 ? (decodeValue(found.data, 0, found.data.length) as FormatMark) : undefined
}

/** The prefix of the subjects of the queue and of the format. */
function internalRoot({ prefix }: Names): string {
	return `${prefix}.kv.q.0`
}

function placeOf({ prefix }: Names): string {
	return `the cluster (prefix ${prefix})`
}

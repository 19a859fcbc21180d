/**
 * The two streams of one installation, and their subjects. With the prefix `svc`:
 *
 *     svc_state    svc.kv.r.0.KEY      the records, one message per key; without a body the key was deleted
 *                  svc.kv.q.0.KEY      the queue and the format, the same way
 *                  svc.lease           which gateway may write
 *     svc_events   svc.ev.0.RUN        the log: one message per append, all of a run under one subject
 *
 * Each message of state replaces the previous one of its subject, by the header `Nats-Rollup` instead of a limit of the stream. A
 * message that a limit removed reappears when a server is killed after its replacement has expired (nats-server, issue 8505), and
 * deleted records would do the same.
 *
 * KEY and RUN are base64url. The 0 is the number of the shard; so far there is only one.
 *
 * Except for the lease, nothing publishes to these subjects directly. The gateway that holds the lease publishes to
 * `svc.w.EPOCH.kv…` and `svc.w.EPOCH.ev…`, and the streams rewrite these subjects. Both streams accept only the epoch of the current
 * holder: late messages of an earlier holder reach no stream.
 */
import { Fault } from '../../../core/errors.ts'
import type { Answer, ApiError, Client } from './client.ts'
import { STREAM_NOT_FOUND, textOfError, unreachable } from './client.ts'

export interface Names {
	prefix: string
	state: string
	events: string
	lease: string
}

export interface StreamInfo {
	config: StreamConfig
	state: { last_seq: number; first_seq: number; bytes: number; subjects?: Record<string, number> }
	cluster?: { leader?: string; replicas?: { name: string; current: boolean }[] }
	total?: number
}

interface StreamConfig {
	name: string
	subjects: string[]
	num_replicas: number
	allow_atomic?: boolean
	allow_msg_ttl?: boolean
	allow_direct?: boolean
	allow_rollup_hdrs?: boolean
}

/** The last message of the subject is not the expected one. */
export const WRONG_SEQUENCE = 10071
const NO_SUITABLE_PEERS = 10005
const SOME_REPLICAS_IMPOSSIBLE = 10074

export function namesOf(prefix: string): Names {
	return { prefix, state: `${prefix}_state`, events: `${prefix}_events`, lease: `${prefix}.lease` }
}

/** The header of a message that replaces the previous one of its subject. */
export const replacing = { 'Nats-Rollup': 'sub' } as const

/** Encodes a part of a subject; base64url has no characters that are special in subjects. */
export function token(text: string): string {
	return Buffer.from(text).toString('base64url')
}

/** The prefix of a subject, and the key of its record. */
export function rootAndKeyOf(subject: string): [root: string, key: string] {
	const dot = subject.lastIndexOf('.')
	return [subject.slice(0, dot), Buffer.from(subject.slice(dot + 1), 'base64url').toString('utf8')]
}

/**
 * Creates missing streams. Throws `unavailable` if existing ones cannot be used, if creation fails, or if only one of the two was
 * removed: without the log, runs in progress would repeat their steps.
 */
export async function makeStreams(client: Client, names: Names, replicas: number): Promise<void> {
	const missing: StreamConfig[] = []
	let used: string | undefined
	for (const config of configsOf(names, replicas, 0)) {
		const found = await client.api<StreamInfo>(`STREAM.INFO.${config.name}`)
		if (found.error?.err_code === STREAM_NOT_FOUND) missing.push(config)
		else if (found.error) throw refused(config, found.error)
		else {
			mustFit(found.config, config)
			if (found.state.last_seq > 0) used = config.name
		}
	}
	if (missing[0] && used !== undefined) throw gone(missing[0].name, used)
	for (const config of missing) await make(client, config)
}

/** The reason why this installation cannot continue if one of its streams was removed; otherwise null. */
export async function removedStream(client: Client, { state, events }: Names): Promise<Fault | null> {
	for (const name of [state, events]) {
		const { error } = await client.api(`STREAM.INFO.${name}`)
		if (error?.err_code === STREAM_NOT_FOUND) return gone(name, name === state ? events : state)
	}
	return null
}

function gone(name: string, other: string): Fault {
	return new Fault(
		'unavailable',
		`the stream ${name} was removed from the cluster: restore a copy of it and of ${other} (nats stream restore); ` +
			`to begin without any data, remove ${other} as well`,
	)
}

/** Makes the streams accept this epoch only. Also sets the number of replicas. */
export async function setEpoch(client: Client, names: Names, replicas: number, epoch: number): Promise<void> {
	for (const config of configsOf(names, replicas, epoch)) {
		const { error } = await client.api(`STREAM.UPDATE.${config.name}`, config)
		if (error) throw refused(config, error)
	}
}

export async function infoOf(client: Client, stream: string, body?: unknown): Promise<StreamInfo> {
	const found = await client.api<StreamInfo>(`STREAM.INFO.${stream}`, body)
	if (found.error) throw unreachable(`the stream ${stream} cannot be read: ${textOfError(found.error)}`)
	return found
}

/** The error for a message that is not what a gateway writes, with the remedy. `what`: such as `the message 7 of the stream svc_events`. */
export function unreadable(what: string, stream: string, seq: number | string, cause: unknown): Fault {
	const remedy = `restore copies of the streams; if no gateway wrote it, remove it (nats stream rmm ${stream} ${seq})`
	return new Fault('store_damaged', `${what} cannot be read: ${remedy}`, { cause })
}

function configsOf({ prefix, state, events, lease }: Names, replicas: number, epoch: number) {
	const common = {
		storage: 'file',
		retention: 'limits',
		discard: 'old',
		num_replicas: replicas,
		allow_direct: true,
		allow_atomic: true,
		allow_msg_ttl: true,
	}
	const rewritten = (kind: string) => ({
		src: `${prefix}.w.${epoch}.${kind}.>`,
		dest: `${prefix}.${kind}.>`,
	})
	return [
		{
			...common,
			name: state,
			subjects: [lease, rewritten('kv').src],
			subject_transform: rewritten('kv'),
			allow_rollup_hdrs: true,
		},
		{ ...common, name: events, subjects: [rewritten('ev').src], subject_transform: rewritten('ev') },
	]
}

async function make(client: Client, config: StreamConfig): Promise<void> {
	const made: Answer<StreamInfo> = await client.api<StreamInfo>(`STREAM.CREATE.${config.name}`, config)
	if (!made.error) return mustFit(made.config, config)
	// Another gateway may have created it meanwhile.
	const found = await client.api<StreamInfo>(`STREAM.INFO.${config.name}`)
	if (found.error) throw refused(config, made.error)
	mustFit(found.config, config)
}

/** A server leaves settings that it does not support out of its answer. */
function mustFit(found: StreamConfig, wanted: StreamConfig): void {
	const wrong = (['allow_atomic', 'allow_msg_ttl', 'allow_direct', 'allow_rollup_hdrs'] as const).find(
		(name) => wanted[name] !== undefined && found[name] !== wanted[name],
	)
	if (wrong === undefined) return
	throw new Fault(
		'unavailable',
		`the stream ${wanted.name} has ${wrong}: ${String(found[wrong])}, and ${String(wanted[wrong])} is needed: ` +
			'set store.prefix to a name that nothing else uses, or upgrade the servers of the cluster',
	)
}

function refused({ name, num_replicas }: StreamConfig, error: ApiError): Fault {
	const few = error.err_code === NO_SUITABLE_PEERS || error.err_code === SOME_REPLICAS_IMPOSSIBLE
	return new Fault(
		'unavailable',
		few
			? `the cluster cannot keep ${num_replicas} copies of the stream ${name} (${textOfError(error)}): ` +
					'start that many servers, or set store.replicas to 1 for a single one'
			: `the stream ${name} cannot be used: ${textOfError(error)}`,
	)
}

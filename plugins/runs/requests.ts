/**
 * Requests to models as they were sent, without secrets: kept for `runs.keep_requests` days, and deleted with their run.
 * A record describes each; another one holds its body, so that a list need not read the bodies.
 */
import { isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { SentRequest } from '../../core/protocol.ts'
import type { RunLog } from './run-log.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { deleteAll } from '../shared/delete-all.ts'
import type { Store } from '../../core/store/ports.ts'
import { newId, now, timeOfId } from '../../core/util/ids.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { RunRecord } from './contract.ts'
import { keys } from './keys.ts'

/** A request without its body. */
interface KeptRecord extends Omit<SentRequest, 'body'> {
	sent_at: string
	/** Characters of the body that are kept. */
	kept: number
	/** The body is longer. */
	truncated: boolean
}

export type KeptRequest = Omit<KeptRecord, 'step' | 'kept'> & Pick<SentRequest, 'body'>

/** Characters of one body that are kept. */
const BODY_LIMIT = 1024 * 1024
/** Characters of all bodies of one run. */
const RUN_LIMIT = 64 * 1024 * 1024
/** Requests that wait to be written. */
const WAITING = 8
/** Characters of one answer. */
const ANSWER_LIMIT = 8 * 1024 * 1024

/** Returns a function that stores a request. The run does not wait for the write; if it fails, that is only logged. */
export function requestKeeper(
	{ store, log: logger }: Pick<Context, 'store' | 'log'>,
	{ run, log }: { run: RunRecord; log: RunLog },
): (request: SentRequest) => void {
	const { agent_uid: uid, run_id } = run
	const queue = openSerialQueue(WAITING, () => new Error('too many wait for the disk'))
	let left: number | undefined
	const write = async ({ body, ...request }: SentRequest): Promise<void> => {
		left ??= RUN_LIMIT - (await keptOf(store, run))
		const { text, truncated } = withoutSecrets(log, { body, size: request.size })
		if (text.length > left) return
		left -= text.length
		const id = newId()
		const record: KeptRecord = { ...request, sent_at: now(), kept: text.length, truncated }
		await store.commit(agentScope(uid), [
			// It may have been deleted with its conversation.
			{ key: keys.run(uid, run_id), check: true },
			{ key: keys.request(uid, run_id, id), value: record, expect: null },
			{ key: keys.requestBody(uid, run_id, id), value: { body: text }, expect: null },
		])
	}
	return (request) => {
		queue
			.run(() => write(request))
			.catch((error: unknown) => {
				if (!isFault(error, 'conflict', 'not_found'))
					logger.warn({ err: error, run_id }, 'a request to a model could not be kept')
			})
	}
}

/** The requests for one model answer of a run, oldest first: as many as 8 Mi characters hold. */
export async function keptRequests(
	store: Store,
	{ agent_uid: uid, run_id }: RunRecord,
	step: number,
): Promise<KeptRequest[]> {
	const found: KeptRequest[] = []
	let characters = 0
	for await (const { key, value } of store.list<KeptRecord>(keys.requests(uid, run_id))) {
		if (value.step !== step) continue
		characters += value.kept
		if (characters > ANSWER_LIMIT) break
		const entry = await store.get<{ body: string }>(keys.requestBody(uid, run_id, key.at(-1) ?? ''))
		const { sent_at, provider, model, size, truncated } = value
		if (entry) found.push({ sent_at, provider, model, size, truncated, body: entry.value.body })
	}
	return found
}

/** Deletes those of one run. */
export async function forgetRequests(store: Store, uid: string, run_id: string): Promise<void> {
	await deleteAll(store, keys.requests(uid, run_id))
	await deleteAll(store, keys.requestBodies(uid, run_id))
}

/** Deletes those of an agent that were sent before a time, in milliseconds since 1970. */
export async function pruneRequests(store: Store, uid: string, before: number): Promise<void> {
	for await (const { key, value } of store.list<KeptRecord>(keys.requests(uid))) {
		const [, , run_id = '', id = ''] = key
		// Ids of runs sort by time, and no request is older than its run.
		if ((timeOfId(run_id) ?? 0) >= before) return
		if (Date.parse(value.sent_at) >= before) continue
		await store.commit(agentScope(uid), [
			{ key, value: undefined },
			{ key: keys.requestBody(uid, run_id, id), value: undefined },
		])
	}
}

async function keptOf(store: Store, { agent_uid: uid, run_id }: RunRecord): Promise<number> {
	let sum = 0
	for await (const { value } of store.list<KeptRecord>(keys.requests(uid, run_id))) sum += value.kept
	return sum
}

/** A complete body is redacted as data, not as text: JSON may write a secret with escapes. */
function withoutSecrets(
	{ redactor }: RunLog,
	{ body, size }: Pick<SentRequest, 'body' | 'size'>,
): { text: string; truncated: boolean } {
	if (body.length < size) return { text: redactor.cut(body, BODY_LIMIT, 'record').text, truncated: true }
	const text = JSON.stringify(redactor.data(JSON.parse(body), 'record'))
	if (text.length <= BODY_LIMIT) return { text, truncated: false }
	return { text: text.slice(0, BODY_LIMIT).toWellFormed(), truncated: true }
}

/** Transcribes the recordings of a prompt. The text is kept in the run's record. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isFault, messageOf } from '../../core/errors.ts'
import type { Attachment } from '../../core/protocol.ts'
import { isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import type { EndpointOrder } from '../models/contract.ts'
import { keys } from './keys.ts'
import { appendWith } from './records.ts'
import type { RunRecord } from './contract.ts'
import type { Work } from './work.ts'

/** Transcribed characters that are kept of a recording. */
const LIMIT = 50_000
const ERROR_LIMIT = 500
const MAX_TIMEOUT_MS = 120_000
const RETRIES = 2
const PAUSE_MS = 1_000
const ANSWER_BYTES = 4 * 1024 * 1024

/**
 * Each transcript is durable before the next recording is sent, and before the model is called, so a restart transcribes none
 * twice. The model sees which recordings could not be transcribed. Throws only if the log cannot be written.
 */
export async function transcribe(work: Pick<Work, 'ctx' | 'run' | 'log' | 'lock'>): Promise<void> {
	const { ctx, run, log } = work
	const { signal } = work.lock
	const open = (run.attachments ?? []).filter(({ type, transcript }) => type === 'audio' && transcript === undefined)
	if (open.length === 0) return
	let order: EndpointOrder | undefined
	for (const attachment of open) {
		let text: string | null = null
		let error: string | undefined
		try {
			order ??= await ctx.use('models').transcriber()
			if (!order) return
			log.involve({ provider: order.provider })
			const bytes = await ctx.use('attachments').blobs.read(run.agent_uid, attachment.blob)
			if (!bytes) continue
			const said = await ask(order, attachment, bytes, signal)
			text = log.redactor.cut(said, LIMIT, 'record').text.toWellFormed().trim()
		} catch (failure) {
			if (signal.aborted) return
			error = log.redactor.cut(messageOf(failure), ERROR_LIMIT, 'event').text
			ctx.log.warn({ run_id: run.run_id, agent: run.agent }, `a recording was not transcribed: ${error}`)
		}
		if (signal.aborted) return
		run.attachments = await keep(work, attachment.blob, text, error)
	}
}

function keep(
	{ run, log, ctx }: Pick<Work, 'ctx' | 'run' | 'log'>,
	blob: string,
	transcript: string | null,
	error: string | undefined,
): Promise<Attachment[]> {
	const payload = { blob, content: transcript, ...(error !== undefined && { error }) }
	return appendWith(log, run.agent_uid, { events: [{ event_type: 'message.transcribed', payload }] }, async () => {
		const entry = await ctx.store.get<RunRecord>(keys.run(run.agent_uid, run.run_id))
		const attachments = (entry?.value.attachments ?? run.attachments ?? []).map((one) =>
			one.blob === blob && one.type === 'audio' ? { ...one, transcript } : one,
		)
		if (!entry) return { result: attachments }
		return { ops: [{ key: entry.key, value: { ...entry.value, attachments }, expect: entry.rev }], result: attachments }
	})
}

/** Calls `/audio/transcriptions` of OpenAI or a compatible server. */
async function ask(
	order: EndpointOrder,
	{ media_type, name }: Attachment,
	bytes: Uint8Array,
	signal: AbortSignal,
): Promise<string> {
	const named =
		name !== undefined && /^[\w. -]+\.[a-z0-9]{2,4}$/i.test(name) ? name : `recording.${endingOf(media_type)}`
	const form = new FormData()
	form.set('model', order.model)
	form.set('file', new Blob([bytes as Uint8Array<ArrayBuffer>], { type: media_type }), named)
	const encoded = new Response(form)
	const type = encoded.headers.get('content-type') ?? ''
	const body = Buffer.from(await encoded.arrayBuffer())
	for (let attempt = 0; ; attempt++) {
		try {
			return await send(order, type, body, signal)
		} catch (error) {
			// After a timeout, a person has waited long enough for the answer.
			const mayRetry = !(error instanceof Refused) && !isFault(error, 'fetch_timeout') && attempt < RETRIES
			if (signal.aborted || !mayRetry) throw error
			await sleep(PAUSE_MS * 2 ** attempt, undefined, { signal })
		}
	}
}

async function send(order: EndpointOrder, type: string, body: Buffer, signal: AbortSignal): Promise<string> {
	const { base_url, api_key, headers = {}, query = {}, timeout_ms } = order
	const { guardedFetch } = await import('../../core/fetch/guarded-fetch.ts') // heavy, and rarely needed
	const url = new URL(`${base_url.replace(/\/+$/, '')}/audio/transcriptions`)
	for (const [parameter, value] of Object.entries(query)) url.searchParams.set(parameter, value)
	const init = {
		method: 'POST',
		headers: {
			'content-type': type,
			...(api_key !== undefined && { authorization: `Bearer ${api_key}` }),
			...headers,
		},
		body,
		signal,
	}
	const response = await guardedFetch(url, init, {
		// The operator chose the address, so it may be private.
		policy: { protocols: ['https:', 'http:'], private_first: true },
		max_bytes: ANSWER_BYTES,
		timeout_ms: Math.min(timeout_ms, MAX_TIMEOUT_MS),
		redirects: 0,
	})
	const responseText = await response.text()
	if (!response.ok) {
		const { status } = response
		const message = `the server answered with status ${status}: ${responseText}`
		throw status >= 500 || status === 429 || status === 408 ? new Error(message) : new Refused(message)
	}
	const answer = jsonIn(responseText)
	if (isObject(answer) && typeof answer.text === 'string') return answer.text
	throw new Refused(`the answer of the server ${answer === undefined ? 'is not JSON' : 'contains no text'}`)
}

/** An error that a retry would not change. */
class Refused extends Error {}

/** Servers detect the format by the extension of the name. */
function endingOf(media_type: string): string {
	const kind = media_type.split('/')[1] ?? ''
	return { mpeg: 'mp3', mp4: 'm4a', 'x-wav': 'wav' }[kind] ?? kind
}

/** The steps of receiving a delivery, in order. */
import type { KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { isFault } from '../../core/errors.ts'
import { peerOf } from '../shared/peer.ts'
import { tryLater } from '../shared/try-later.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import { accept } from './accept.ts'
import { bodyTooLarge, readBody } from './body.ts'
import type { AcceptedDelivery, Challenge, TestedDelivery, Webhooks, WebhookSettings } from './contract.ts'
import { openGate } from './gate.ts'
import { detailsOf } from './details.ts'
import { payloadOf } from './payload.ts'
import { openReaders } from './readers.ts'
import { keys, sha256 } from './records.ts'
import type { AcceptedRecord, Arrival, Hook, Pointer, WebhookRecord } from './records.ts'
import { refusalsOf } from './refuse.ts'
import { TOKEN } from './secrets.ts'
import type { WebhookSecrets } from './secrets.ts'
import { schemeOf } from './schemes.ts'
import { signatureProblem } from './signature.ts'
import { limitUnknownTokens, unknownToken } from './unknown-tokens.ts'
import { findWebhook } from './webhooks.ts'

const BODY_MS = 10_000

export function receiverOf(ctx: Context<WebhookSettings>, secrets: WebhookSecrets): Pick<Webhooks, 'receive' | 'test'> {
	const { store, config } = ctx
	const gate = openGate(config)
	const readers = openReaders(config)
	const refuseUnknown = limitUnknownTokens()
	const refusals = refusalsOf(ctx)
	const limits = { bytes: config.max_body_kib * 1024, ms: BODY_MS }

	/** Throws `not_found` if the webhook no longer has this token. */
	const recordOf = async ({ uid, slug }: Pick<Pointer, 'uid' | 'slug'>, token_hash: string): Promise<WebhookRecord> => {
		const webhook = (await store.getShared<WebhookRecord>(keys.webhook(uid, slug)))?.value
		if (webhook?.token_hash !== token_hash) throw unknownToken()
		return webhook
	}

	/** Throws `not_found`, or `rate_limited`. A token that was once valid, or whose agent was deleted, never gets the latter. */
	const find = async (token: string, source_ip: string): Promise<Hook> => {
		const token_hash = TOKEN.test(token) ? sha256(token) : undefined
		const pointer = token_hash && (await store.getShared<Pointer>(keys.pointer(token_hash)))?.value
		if (!pointer) throw refuseUnknown(source_ip)
		const webhook = await recordOf(pointer, token_hash)
		const agent = await ctx.use('agents').find(pointer.agent)
		if (agent?.uid !== pointer.uid) throw unknownToken()
		return { agent, webhook }
	}

	const keyOf = async ({ agent, webhook }: Hook): Promise<KeyObject> => {
		try {
			return await secrets.keyOf(agent.uid, webhook)
		} catch (error) {
			if (!isFault(error, 'vault_locked')) throw error
			// Only the operator sees why the vault is locked.
			const message = 'the gateway cannot check signatures at present; try again later'
			throw tryLater('vault_locked', message, 60, error)
		}
	}

	const bodyOf = async (request: IncomingMessage, id: string): Promise<Buffer> => {
		// Most bodies arrive together with the headers. They need no slot, since they cannot be slow. Node parses the received data
		// in the next turn of the event loop.
		if (!request.complete) await turn()
		if (request.complete) return readBody(request, limits)
		let read = 0
		const count = (part: Buffer): void => void (read += part.length)
		const { signal, leave } = await readers.wait(id, () => read + request.readableLength)
		request.on('data', count)
		try {
			return await readBody(request, { ...limits, signal })
		} finally {
			request.off('data', count)
			leave()
		}
	}

	const receiveBody = async (arrival: Arrival, request: IncomingMessage): Promise<AcceptedDelivery | Challenge> => {
		const { id } = arrival.hook.webhook
		gate.check(id)
		// Before the body is read, since nothing can be accepted without the key.
		await keyOf(arrival.hook)
		const body = await bodyOf(request, id)
		// The secret may have been replaced while the body was read.
		const { agent, webhook } = arrival.hook
		const hook = { agent, webhook: await recordOf({ uid: agent.uid, slug: webhook.slug }, webhook.token_hash) }
		return admit({ ...arrival, hook }, await keyOf(hook), request.headers, body)
	}

	const admit = async (
		arrival: Arrival,
		key: KeyObject,
		headers: IncomingHttpHeaders,
		body: Buffer,
	): Promise<AcceptedDelivery | Challenge> => {
		const scheme = schemeOf(arrival.hook.webhook)
		const problem = signatureProblem(headers, key, body, scheme)
		if (problem !== null) throw await refusals.record(arrival, 'signature_invalid', problem)
		const { slot, leave } = await gate.enter(arrival.hook.webhook.id, body.length)
		try {
			const read = payloadOf(headers, body, scheme)
			if (read.problem !== undefined) throw await refusals.record(arrival, 'invalid_request', read.problem)
			const details = detailsOf(scheme, headers, read.value)
			if ('problem' in details) throw await refusals.record(arrival, 'invalid_request', details.problem)
			if ('stale' in details) throw await refusals.record(arrival, 'signature_invalid', details.stale)
			if ('challenge' in details) return details
			return await accept(ctx, arrival, { payload: read.payload, slot, ...details })
		} finally {
			leave()
		}
	}

	const orReport = async <T>(hook: Hook, source_ip: string, work: Promise<T>): Promise<T> => {
		try {
			return await work
		} catch (error) {
			// A recorded refusal has already been reported.
			if (isFault(error, 'rate_limited', 'payload_too_large', 'vault_locked'))
				refusals.report(hook, error, source_ip, null)
			throw error
		}
	}

	const send = async (arrival: Arrival, payload: unknown): Promise<TestedDelivery> => {
		const { agent, webhook } = arrival.hook
		gate.check(webhook.id)
		const body = Buffer.from(JSON.stringify(payload))
		if (body.length > limits.bytes) throw bodyTooLarge(limits.bytes)
		await keyOf(arrival.hook) // as for a real delivery, which needs the key
		const { slot, leave } = await gate.enter(webhook.id, body.length)
		const content = { payload: body.toString(), event: undefined, sender_id: newId(), slot }
		const accepted = await accept(ctx, arrival, content).finally(leave)
		const record = await store.get<AcceptedRecord>(keys.accepted(agent.uid, webhook.id, accepted.delivery_id))
		if (typeof record?.value.run_id !== 'string') throw unknownToken() // deleted meanwhile
		return { ...accepted, run_id: record.value.run_id }
	}

	return {
		async receive(token, request) {
			const source_ip = peerOf(request).remoteAddress ?? 'unknown'
			const hook = await find(token, source_ip)
			return orReport(hook, source_ip, receiveBody({ hook, source_ip, received_at: now() }, request))
		},
		async test(agent, slug, payload, source_ip) {
			const hook: Hook = { agent, webhook: (await findWebhook(store, agent, slug)).value }
			return orReport(hook, source_ip, send({ hook, source_ip, received_at: now() }, payload))
		},
	}
}

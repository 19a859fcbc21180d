/** Validation that joi cannot express: exactly one of two forms must be given. */
import { invalidField } from '../shared/invalid-field.ts'
import type { Answerers } from './contract.ts'

export interface ChannelRequest {
	bot_token_ref?: string
	config?: Record<string, unknown>
}

export type PairingRequest = Partial<Record<'pairing_code' | 'agent_id' | 'channel_id' | 'external_chat_id', string>> &
	Answerers

/** Takes the reference from either place, and removes it from the config. */
export function tokenRef({ bot_token_ref: ref, config }: ChannelRequest): ChannelRequest {
	const { bot_token_secret_ref: nested, ...rest } = config ?? {}
	if (ref !== undefined && nested !== undefined && nested !== ref)
		throw invalidField(
			'config.bot_token_secret_ref',
			'bot_token_ref and config.bot_token_secret_ref name two secrets; give one',
		)
	const bot_token_ref = ref ?? (nested as string | undefined)
	return { ...(bot_token_ref !== undefined && { bot_token_ref }), ...(config && { config: rest }) }
}

export function pairingRequest(request: PairingRequest) {
	const { pairing_code, agent_id, channel_id, external_chat_id, who_may_answer, paired_by } = request
	const both = 'give either pairing_code, or agent_id, channel_id and external_chat_id'
	if (pairing_code !== undefined) {
		if (channel_id !== undefined) throw invalidField('channel_id', both)
		if (external_chat_id !== undefined) throw invalidField('external_chat_id', both)
		if (paired_by !== undefined)
			throw invalidField('paired_by', 'leave paired_by out: a code already identifies who requested it')
		return { pairing_code, agent_id, who_may_answer }
	}
	if (agent_id === undefined && channel_id === undefined && external_chat_id === undefined) throw invalidField('', both)
	if (agent_id === undefined) throw invalidField('agent_id', `agent_id is missing: ${both}`)
	if (channel_id === undefined) throw invalidField('channel_id', `channel_id is missing: ${both}`)
	if (external_chat_id === undefined) throw invalidField('external_chat_id', `external_chat_id is missing: ${both}`)
	return { agent_id, channel_id, external_chat_id, who_may_answer, paired_by }
}

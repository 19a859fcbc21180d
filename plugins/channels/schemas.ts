/** Schemas of requests about channels, and of the responses. */
import type { ObjectSchema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { agentId } from '../shared/agent-name.ts'

const REF_LIMIT = 128
const URL_LIMIT = 2_048
const SENDERS_LIMIT = 1_000

const externalId = Joi.string()
	.pattern(/^[\x20-\x7e]{1,128}$/)
	.message('{#label} must be 1 to 128 printable ASCII characters')

/** Schemes of addresses that the gateway connects to over HTTP. */
export const webSchemes: readonly string[] = ['http', 'https']

/** `schemes`: the accepted ones; absent if the adapter decides. */
const apiRootOf = (schemes?: readonly string[]) =>
	Joi.string()
		.max(URL_LIMIT)
		.custom((text: string, helpers) => {
			// URL parsers skip some of these characters, which would then end up in addresses built from this one.
			if (/[\s\p{Cc}]/u.test(text))
				return helpers.message({ custom: '{#label} must not contain spaces or control characters' })
			const url = URL.parse(text)
			const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
			if (!url || scheme === undefined || (schemes && !schemes.includes(scheme))) {
				const accepted = (schemes ?? webSchemes).map((name) => `${name}://`).join(' or ')
				return helpers.message({
					custom: `{#label} must be an address that begins with ${schemes ? '' : 'a scheme, such as '}${accepted}`,
				})
			}
			if (url.username !== '' || url.password !== '')
				return helpers.message({ custom: '{#label} must not contain a user or password' })
			if (webSchemes.includes(scheme) && (url.search !== '' || url.hash !== '' || /[?#]/.test(text)))
				return helpers.message({ custom: '{#label} must not contain a query or fragment' })
			return text
		})

const commonKeys = {
	agent_id: agentId.description('The agent to which codes bind chats, if the request names none.'),
	api_root: apiRootOf()
		.description(
			"Another server than the platform's, such as your own Bot API server. Its scheme is http or https, unless the type of channel accepts others.",
		)
		.example('http://127.0.0.1:8081'),
	answer: Joi.valid('mentions', 'all').description(
		'In groups: answer messages that are addressed to the bot (`mentions`, the default), or all messages.',
	),
	allowed_senders: Joi.array()
		.items(externalId)
		.max(SENDERS_LIMIT)
		.unique()
		.description('Ids of the users who may talk to the bot. Absent: everyone in a bound chat.'),
	progress: Joi.boolean().description(
		'Shows in the chat which tools a run calls, in one message that becomes the answer, if the run takes longer than three seconds. Default true.',
	),
	during_run: Joi.valid('in_order', 'merged').description(
		'Messages that arrive while the agent works on an earlier one: each is answered separately, in their order (`in_order`, the default), or all of them together after the current run (`merged`).',
	),
}

/** Keys that every channel's config may have, in addition to those of its adapter. */
export const commonConfig = Joi.object(commonKeys)

/** The same, for an adapter that accepts addresses with these schemes. */
export function commonConfigOf(schemes: readonly string[] = webSchemes): ObjectSchema {
	return commonConfig.keys({ api_root: apiRootOf(schemes) })
}

const ref = Joi.string().min(1).max(REF_LIMIT)
const secretRef = ref
	.description('Id or name of the secret in the vault that holds the bot token.')
	.example('BOT_TOKEN')
const nestedRef = ref.description('The same as bot_token_ref.')
const configText = 'Settings of the channel, at most 64 KiB as JSON; unknown keys are kept.'

const strict = { convert: false } as const
export const newChannel = Joi.object({
	type: Joi.string()
		.min(1)
		.max(32)
		.required()
		.description('The kind of channel, such as `chat_a` or `chat_b`, for which `telegram` and `discord` are aliases.')
		.example('chat_a'),
	bot_token_ref: secretRef,
	config: commonConfig.keys({ bot_token_secret_ref: nestedRef }).unknown().description(configText),
})
	.example({ type: 'chat_a', bot_token_ref: 'BOT_TOKEN', config: { agent_id: 'ada' } })
	.required()
	.prefs(strict)
export const channelChange = Joi.object({
	bot_token_ref: secretRef,
	config: Joi.object(Object.fromEntries(Object.entries(commonKeys).map(([key, schema]) => [key, schema.allow(null)])))
		.keys({ bot_token_secret_ref: nestedRef })
		.unknown()
		.description('Keys to change. A key set to null is removed; others stay.'),
})
	.example({ config: { answer: 'all', allowed_senders: ['100200300'] } })
	.required()
	.prefs(strict)
const answerers = {
	who_may_answer: Joi.valid('anyone', 'paired').description(
		'Who may answer questions and approvals of the agent in this chat: everyone there, or only the person who paired it. Default: `paired` if that person is known, as with a code; else `anyone`.',
	),
	paired_by: externalId.description("The platform's id of that person, as /whoami shows it."),
}
export const bindingChange = Joi.object(answerers)
	.min(1)
	.example({ who_may_answer: 'paired', paired_by: '100200300' })
	.required()
	.prefs(strict)
export const pairing = Joi.object({
	...answerers,
	pairing_code: Joi.string()
		.max(64)
		.description('The code that the bot gave to the chat, in any case.')
		.example('7K3N9QXM'),
	agent_id: agentId,
	channel_id: Joi.string().max(64).description('Id of the channel.'),
	external_chat_id: externalId.description("The platform's id of a chat, or of its container, such as a server."),
})
	.example({ agent_id: 'ada', channel_id: '0197a4c2-62c1-7f32-8d77-b2e3f4051627', external_chat_id: '100200300' })
	.required()
	.prefs(strict)

const iso = Joi.string().isoDate()
const channelId = Joi.string()
	.max(64)
	.required()
	.description('Id of the channel.')
	.example('0197a4c2-62c1-7f32-8d77-b2e3f4051627')
const bindingId = Joi.string().required().example('0197a4c2-63d2-7043-9e88-c3f405162738')
export const params = Joi.object({ id: channelId })
export const bindingParams = Joi.object({
	id: channelId,
	binding_id: bindingId.max(64).description('Id of the binding.'),
})

const shownKeys = {
	id: channelId,
	type: Joi.string().required().example('chat_a'),
	status: Joi.valid('active').required(),
	created_at: iso.required(),
}
export const channel = Joi.object(shownKeys).id('Channel')
const bindingKeys = {
	binding_id: bindingId,
	agent_id: Joi.string().required().example('ada'),
	channel_id: channelId,
	external_chat_id: Joi.string().required().example('100200300'),
}
export const paired = Joi.object(bindingKeys).id('Pairing')
export const binding = Joi.object({
	...bindingKeys,
	who_may_answer: Joi.valid('anyone', 'paired').required(),
	paired_by: Joi.string().allow(null).required().description('Null if unknown.').example('100200300'),
	created_at: iso.required(),
}).id('Binding')
export const waiting = Joi.object({
	chats: Joi.array()
		.items(
			Joi.object({
				channel_id: channelId,
				external_chat_id: Joi.string().required().example('100200300'),
				asked_by: Joi.string()
					.allow(null)
					.required()
					.description(
						"The platform's id of the person who requested the code, for `paired_by` of POST /v1/channels/pair.",
					)
					.example('100200300'),
				expires_at: iso.required(),
			}),
		)
		.required(),
}).id('WaitingChats')
export const bindings = Joi.array().items(binding).required()
/** The response to a deletion. */
export const deletedChannel = Joi.object({ id: channelId, status: Joi.valid('deleted').required() })
export const deletedBinding = Joi.object({ binding_id: bindingId, status: Joi.valid('deleted').required() })
export const channelDetails = Joi.object({
	...shownKeys,
	bot_token_ref: Joi.string().required().example('BOT_TOKEN'),
	config: Joi.object().unknown().required().example({ agent_id: 'ada' }),
	connection: Joi.valid('connecting', 'connected', 'reconnecting', 'error', 'disabled')
		.required()
		.example('connected')
		.description('`error`: a person must change something. `disabled`: no running plugin provides the type.'),
	bot: Joi.string()
		.allow(null, '')
		.required()
		.description('Name of the bot on its platform, once it is known.')
		.example('@ada_bot'),
	last_error: Joi.string()
		.allow(null, '')
		.required()
		.description('Text from the platform or the plugin.')
		.example(null),
	bindings,
}).id('ChannelDetails')

/** What requests about channels may say, and what is answered. */
import Joi from 'joi'

const REF_LIMIT = 128
const URL_LIMIT = 2_048
const SENDERS_LIMIT = 1_000

const agentId = Joi.string()
	.pattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
	.message('{#label} must be the name of an agent: 1 to 64 of A-Z a-z 0-9 - _ . that begin with a letter or digit')
	.example('ada')
const externalId = Joi.string()
	.pattern(/^[\x20-\x7e]{1,128}$/)
	.message('{#label} must be 1 to 128 printable ASCII characters')

const apiRoot = Joi.string()
	.max(URL_LIMIT)
	.custom((text: string, helpers) => {
		// What parses an address passes over some of these, and they end up in the middle of those that are made of it.
		if (/[\s\p{Cc}]/u.test(text))
			return helpers.message({ custom: '{#label} must not hold blanks or control characters' })
		const url = URL.parse(text)
		if (!url || !/^https?:\/\//i.test(text))
			return helpers.message({ custom: '{#label} must be an address that begins with http:// or https://' })
		if (url.username !== '' || url.password !== '')
			return helpers.message({ custom: '{#label} must not hold a user or password' })
		if (url.search !== '' || url.hash !== '' || /[?#]/.test(text))
			return helpers.message({ custom: '{#label} must not hold a query or fragment' })
		return text
	})

const commonKeys = {
	agent_id: agentId.description('The agent that chats are bound to by code, where the request names none.'),
	api_root: apiRoot
		.description("Another server than the platform's own, such as a Bot API server of your own.")
		.example('http://127.0.0.1:8081'),
	answer: Joi.valid('mentions', 'all').description(
		'In groups: answer what is addressed to the bot (`mentions`, the default), or everything.',
	),
	allowed_senders: Joi.array()
		.items(externalId)
		.max(SENDERS_LIMIT)
		.unique()
		.description('Ids of those who may talk to the bot. Absent: everybody in a bound chat.'),
}

/** Keys that every channel's config may have; those of its adapter come to them. */
export const commonConfig = Joi.object(commonKeys)

const ref = Joi.string().min(1).max(REF_LIMIT)
const secretRef = ref
	.description('Id or name of the secret in the vault that holds the bot token.')
	.example('BOT_TOKEN')
const nestedRef = ref.description('The same as bot_token_ref.')
const configText = 'Settings of the channel, at most 64 KiB as JSON; keys that nobody knows are kept.'

const strict = { convert: false } as const
export const newChannel = Joi.object({
	type: Joi.string()
		.min(1)
		.max(32)
		.required()
		.description('The kind of channel, such as `chat_a` or `chat_b`; `telegram` and `discord` stand for those.')
		.example('chat_a'),
	bot_token_ref: secretRef,
	config: commonConfig.keys({ bot_token_secret_ref: nestedRef }).unknown().description(configText),
})
	.required()
	.prefs(strict)
export const channelChange = Joi.object({
	bot_token_ref: secretRef,
	config: Joi.object(Object.fromEntries(Object.entries(commonKeys).map(([key, schema]) => [key, schema.allow(null)])))
		.keys({ bot_token_secret_ref: nestedRef })
		.unknown()
		.description('Keys to change; a key set to null is removed, what is not named stays.'),
})
	.required()
	.prefs(strict)
export const pairing = Joi.object({
	pairing_code: Joi.string()
		.max(64)
		.description('The code that the bot gave to the chat, in any case.')
		.example('7K3N9QXM'),
	agent_id: agentId.description('Name of the agent.'),
	channel_id: Joi.string().max(64).description('Id of the channel.'),
	external_chat_id: externalId.description("The platform's id of a chat, or of what it lies in, such as a server."),
})
	.required()
	.prefs(strict)

const iso = Joi.string().isoDate()
const channelId = Joi.string().max(64).required().description('Id of the channel.')
export const params = Joi.object({ id: channelId })
export const bindingParams = Joi.object({
	id: channelId,
	binding_id: Joi.string().max(64).required().description('Id of the binding.'),
})

const shownKeys = {
	id: Joi.string().required(),
	type: Joi.string().required(),
	status: Joi.valid('active').required(),
	created_at: iso.required(),
}
export const channel = Joi.object(shownKeys).id('Channel')
const bindingKeys = {
	binding_id: Joi.string().required(),
	agent_id: Joi.string().required(),
	channel_id: Joi.string().required(),
	external_chat_id: Joi.string().required(),
}
export const paired = Joi.object(bindingKeys).id('Pairing')
const binding = Joi.object({ ...bindingKeys, created_at: iso.required() }).id('Binding')
export const bindings = Joi.array().items(binding).required()
export const channelDetails = Joi.object({
	...shownKeys,
	bot_token_ref: Joi.string().required(),
	config: Joi.object().unknown().required(),
	connection: Joi.valid('connecting', 'connected', 'reconnecting', 'error', 'disabled')
		.required()
		.description('`error`: only a change by a person helps. `disabled`: no plugin that runs knows the type.'),
	bot: Joi.string().allow(null, '').required().description('Who the bot is on its platform, once that is known.'),
	last_error: Joi.string().allow(null, '').required().description('Text of the platform or of the plugin.'),
	bindings,
}).id('ChannelDetails')

import type { EventType } from '../../core/plugin.ts'

const channel = { channel_id: 'The channel.', type: 'Its type, such as `chat_a`.' }
const binding = {
	channel_id: 'The channel.',
	binding_id: 'The binding.',
	external_chat_id: 'Id of the chat on its platform.',
}

export default {
	'channel.created': { description: 'A channel was created.', payload: channel },
	'channel.updated': {
		description: 'A channel was changed.',
		payload: {
			channel_id: 'The channel.',
			fields: 'Names of the changed fields.',
			'binding_id?': 'The binding, if that was changed.',
		},
	},
	'channel.deleted': { description: 'A channel was deleted.', payload: channel },
	'channel.connected': {
		description: 'A channel is connected to its platform.',
		payload: { ...channel, bot: 'The name of the bot there.' },
	},
	'channel.disconnected': {
		description: 'A channel lost its connection and reconnects.',
		payload: { ...channel, error: 'The reason, or null, for example after a change of its settings or its plugin.' },
	},
	'channel.paired': {
		description: 'A chat was bound to an agent.',
		payload: { ...binding, via: '`code` or `request`.' },
	},
	'channel.unpaired': { description: 'A chat was unbound from its agent.', payload: binding },
	'channel.error': {
		description: 'A channel has an error.',
		payload: {
			channel_id: 'The channel.',
			'type?': 'Its type, if there is an `error`.',
			'error?': 'Why its connection failed, or why messages are delayed.',
			'run_id?': 'The run whose answer could not be sent.',
			'chat_id?': 'The chat to which the answer could not be sent.',
			'code?': '`refused` by the platform, or `late`: not sent within 24 hours.',
			'message?': 'Why it could not be sent.',
		},
	},
	'channel.message_received': {
		description: 'A channel received a message.',
		payload: {
			channel_id: 'The channel.',
			chat_id: 'The chat.',
			'thread_id?': 'The thread in it.',
			message_id: 'Id of the message on its platform.',
			'run_id?': 'The run that the message started or answered, if the event is not part of that run.',
		},
	},
	'channel.message_sent': {
		description: 'A channel sent a message.',
		payload: {
			channel_id: 'The channel.',
			run_id: 'The run that it answers.',
			chat_id: 'The chat.',
			'thread_id?': 'The thread in it.',
			message_ids: 'Ids of the messages on their platform.',
		},
	},
} satisfies Record<string, EventType>

import type { EventType } from '../../core/plugin.ts'

export default {
	'channel.created': {
		description: 'A channel was created.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
		},
	},
	'channel.updated': {
		description: 'A channel was changed.',
		payload: {
			channel_id: 'The channel.',
			fields: 'What changed.',
		},
	},
	'channel.deleted': {
		description: 'A channel was deleted.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
		},
	},
	'channel.connected': {
		description: 'A channel is connected to its platform.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
			bot: 'The name of the bot there.',
		},
	},
	'channel.disconnected': {
		description: 'A channel lost its platform and connects again.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
			error: 'Why, or null.',
		},
	},
	'channel.paired': {
		description: 'A chat was bound to an agent.',
		payload: {
			channel_id: 'The channel.',
			binding_id: 'The binding.',
			external_chat_id: 'The chat, as the platform calls it.',
			via: '`code` or `request`.',
		},
	},
	'channel.unpaired': {
		description: 'A chat was taken from its agent.',
		payload: {
			channel_id: 'The channel.',
			binding_id: 'The binding.',
			external_chat_id: 'The chat, as the platform calls it.',
		},
	},
	'channel.error': {
		description: 'A channel met an error.',
		payload: {
			channel_id: 'The channel.',
			'type?': 'Its type, where it is about the connection.',
			'error?': 'What is wrong with the connection.',
			'run_id?': 'The run whose answer could not be sent.',
			'chat_id?': 'The chat that it was for.',
			'code?': '`refused` by the platform, or `late`: not connected in time.',
			'message?': 'Why it could not be sent.',
		},
	},
	'channel.message_received': {
		description: 'A message came in by a channel.',
		payload: {
			channel_id: 'The channel.',
			chat_id: 'The chat.',
			'thread_id?': 'The thread in it.',
			message_id: 'The message, as the platform calls it.',
			'run_id?': 'The run that it led to, where the event is not part of that run.',
		},
	},
	'channel.message_sent': {
		description: 'A message went out by a channel.',
		payload: {
			channel_id: 'The channel.',
			run_id: 'The run that it answers.',
			chat_id: 'The chat.',
			'thread_id?': 'The thread in it.',
			message_ids: 'The messages, as the platform calls them.',
		},
	},
} satisfies Record<string, EventType>

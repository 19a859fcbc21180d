/**
 * Every type of event that the gateway itself emits, by the first word of its name: what it tells, and what its payload
 * holds. Plugins of third parties may add types of their own.
 */
export interface EventKind {
	/** One sentence. */
	tells: string
	/** Each field in one sentence, by its name; `name?` is a field that may be absent. */
	payload: Readonly<Record<string, string>>
}

export const catalogue = {
	'run.queued': {
		tells: 'A run waits behind another one of its conversation.',
		payload: {
			conversation: 'The conversation in which it waits.',
		},
	},
	'run.started': {
		tells: 'A run begins to work on its prompt.',
		payload: {
			trigger:
				'What began it: `api`, `chat`, the type of a channel, `webhook`, `heartbeat`, `subagent`, `compaction`, `openai` or `mcp`.',
			conversation: 'The conversation that it belongs to.',
			'parent_run_id?': 'The run that started it as a sub-agent.',
			'request_id?': 'The request that started it, as in `X-Request-Id` and the log.',
			'traceparent?': "The caller's place in a trace, as W3C Trace Context writes it.",
		},
	},
	'run.paused': {
		tells: 'A run waits for the answer to a question, or for the end of a sub-agent.',
		payload: {
			'question_id?': 'The question that it waits for.',
			'waits_for?': 'The run that it waits for.',
		},
	},
	'run.resumed': {
		tells: 'A run goes on, since what it waited for has come or the gateway was restarted.',
		payload: {
			reason: '`answer`, `subagent` or `restart`; `withdrawn` or `expired` where nobody waits for the answer any more.',
			'question_id?': 'The question that it waited for.',
			'run_id?': 'The sub-agent that it waited for.',
		},
	},
	'run.completed': {
		tells: 'A run ended with an answer.',
		payload: {
			usage: 'Tokens of the whole run so far: `input_tokens` and `output_tokens`.',
		},
	},
	'run.failed': {
		tells: 'A run ended with an error.',
		payload: {
			error: 'What went wrong, for people.',
			code: 'The [code of the error](http-api.md#codes).',
			usage: 'Tokens of the whole run so far: `input_tokens` and `output_tokens`.',
		},
	},
	'run.stopped': {
		tells: 'A run was stopped from outside.',
		payload: {},
	},
	'message.user': {
		tells: 'What the user said to the agent.',
		payload: {
			content: 'The text.',
		},
	},
	'message.assistant': {
		tells: 'What the agent answered.',
		payload: {
			content: 'The text.',
		},
	},
	'message.system': {
		tells: 'The persona with which a run begins.',
		payload: {
			content: 'The text.',
		},
	},
	'model.request': {
		tells: 'A model is asked.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that is asked.',
			step: 'The number of the step in this run.',
			messages: 'How many messages it is given.',
			tools: 'How many tools it is offered.',
		},
	},
	'model.response': {
		tells: 'A model has answered; with the tokens it took.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that answered.',
			finish_reason: 'Why it stopped, in its own word, such as `stop` or `tool_calls`.',
			usage: 'Tokens of this call: `input_tokens` and `output_tokens`.',
			tool_calls: 'The names of the tools that it wants called.',
		},
	},
	'model.stream': {
		tells: 'A piece of an answer in the making; delivered live and not kept.',
		payload: {
			content: 'The piece of text.',
		},
	},
	'model.retry': {
		tells: 'A model call failed and is made again after a delay.',
		payload: {
			provider: 'Its name in gateway.yaml.',
			model: 'The model that is asked again.',
			attempt: 'The number of the attempt that failed, from 1.',
			delay_ms: 'Milliseconds until the next one.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
	'model.fallback': {
		tells: 'A model call failed and goes to the next provider.',
		payload: {
			from: 'The provider that failed.',
			to: 'The provider that is asked now.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
	'question.asked': {
		tells: 'An agent asks a question and waits for the answer.',
		payload: {
			question_id: 'For the answer.',
			question: 'The text.',
			'options?': 'The answers to choose from.',
		},
	},
	'question.answered': {
		tells: 'A question of an agent was answered.',
		payload: {
			question_id: 'The question.',
			answer: 'The text.',
		},
	},
	'skill.installed': {
		tells: 'A skill was installed and waits in quarantine for its approval.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			digest: 'SHA-256 of the document.',
			source: '`url` or `inline`.',
			'url?': 'Where it came from, without the query.',
		},
	},
	'skill.approved': {
		tells: 'An operator approved a skill.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			digest: 'SHA-256 of the document.',
			replaces: 'The id of the revision that was active; null: none.',
			by: 'The id of the token that approved; null: a local caller without one.',
		},
	},
	'skill.removed': {
		tells: 'A skill was removed.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			status: 'What it was: `active` or `quarantined`.',
		},
	},
	'skill.invoked': {
		tells: 'An agent calls a skill.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			call_id: 'The call, unique in its run.',
			arguments: 'What it is called with, as JSON text; cut where it is long.',
		},
	},
	'skill.completed': {
		tells: 'A skill answered.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			call_id: 'The call, unique in its run.',
			result: 'What the model is told, as text; cut where it is long.',
		},
	},
	'skill.failed': {
		tells: 'A skill failed or exceeded a limit.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			call_id: 'The call, unique in its run.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
	'skill.logged': {
		tells: 'What the program of a skill logged in one call.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			lines: 'The lines, 8 KiB of text at most.',
		},
	},
	'primitive.called': {
		tells: 'An agent calls a primitive.',
		payload: {
			primitive: 'Its name, such as `memory.store`.',
			call_id: 'The call, unique in its run.',
			arguments: 'What it is called with, as JSON text; cut where it is long.',
		},
	},
	'primitive.result': {
		tells: 'A primitive answered.',
		payload: {
			primitive: 'Its name, such as `memory.store`.',
			call_id: 'The call, unique in its run.',
			result: 'What the model is told, as text; cut where it is long.',
		},
	},
	'primitive.failed': {
		tells: 'A primitive failed.',
		payload: {
			primitive: 'Its name, such as `memory.store`.',
			call_id: 'The call, unique in its run.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
	'memory.stored': {
		tells: 'A fact was stored in long-term memory.',
		payload: {
			memory_id: 'Its id.',
			tags: 'Its tags.',
		},
	},
	'memory.recalled': {
		tells: 'Long-term memory was searched by an agent.',
		payload: {
			count: 'How many were found.',
			memory_ids: 'Their ids, best first.',
		},
	},
	'memory.forgotten': {
		tells: 'A fact was removed from long-term memory.',
		payload: {
			memory_id: 'Its id.',
		},
	},
	'memory.compaction_started': {
		tells: 'Compaction of long-term memory began.',
		payload: {
			compaction_id: 'Its id.',
			memories_before: 'How many memories there are.',
		},
	},
	'memory.compacted': {
		tells: 'Compaction of long-term memory ended.',
		payload: {
			compaction_id: 'Its id.',
			status: '`completed` or `failed`; a failed one has changed nothing.',
			memories_before: 'How many memories there were.',
			memories_after: 'How many there are now; null where it failed.',
			merged: 'How many groups became one memory each.',
			'error?': 'Why it failed.',
		},
	},
	'memory.compaction_undone': {
		tells: 'A compaction of long-term memory was undone: the originals are back.',
		payload: {
			compaction_id: 'Its id.',
		},
	},
	'vault.accessed': {
		tells: 'An agent read a secret under a grant.',
		payload: {
			secret: "The secret's name.",
			secret_id: "The secret's id.",
			grant_id: "The grant's id.",
			via: 'What read it, such as `vault.read`, `skill:weather` or `mcp:files`.',
		},
	},
	'vault.denied': {
		tells: 'An agent asked for a secret without a grant.',
		payload: {
			secret: 'The name that was asked for.',
			via: 'What read it, such as `vault.read`, `skill:weather` or `mcp:files`.',
		},
	},
	'vault.secret_created': {
		tells: 'A secret was stored.',
		payload: {
			secret_id: "The secret's id.",
			name: 'Its name.',
			'policy_label?': 'Its label, such as `channel`.',
		},
	},
	'vault.secret_updated': {
		tells: 'A secret got another value.',
		payload: {
			secret_id: "The secret's id.",
			name: 'Its name.',
			'policy_label?': 'Its label, such as `channel`.',
			version: 'Counts the values that it had.',
		},
	},
	'vault.secret_deleted': {
		tells: 'A secret was deleted, with its grants.',
		payload: {
			secret_id: "The secret's id.",
			name: 'Its name.',
			grants: 'How many grants went with it.',
		},
	},
	'vault.granted': {
		tells: 'An agent was granted a secret.',
		payload: {
			grant_id: "The grant's id.",
			secret_id: "The secret's id.",
			secret: "The secret's name.",
			reveal: 'Whether the model may see the value.',
		},
	},
	'vault.revoked': {
		tells: 'A grant was taken back.',
		payload: {
			grant_id: "The grant's id.",
			secret_id: "The secret's id.",
		},
	},
	'vault.key_rotated': {
		tells: 'The master key of the vault was changed.',
		payload: {
			secrets: 'How many secrets it protects.',
		},
	},
	'heartbeat.created': {
		tells: 'A heartbeat was set up for an agent.',
		payload: {
			heartbeat_id: 'Its id.',
			cron: 'Its cron expression, or null.',
			timezone: 'Its time zone, or null.',
			every: 'Its distance, such as `30m`, or null.',
			next_at: 'When it fires first.',
		},
	},
	'heartbeat.fired': {
		tells: 'A heartbeat started a run.',
		payload: {
			heartbeat_id: 'Its id.',
			due_at: 'When it was due.',
			run_id: 'The run that it started.',
		},
	},
	'heartbeat.skipped': {
		tells: 'A heartbeat was due and started no run.',
		payload: {
			heartbeat_id: 'Its id.',
			due_at: 'When it was due.',
			reason: '`busy`: the agent is at work; `missed`: it was due too long ago; `queue_full`.',
			next_at: 'When it is due next.',
		},
	},
	'heartbeat.deleted': {
		tells: 'A heartbeat was deleted.',
		payload: {
			heartbeat_id: 'Its id.',
		},
	},
	'subagent.spawned': {
		tells: 'An agent started a sub-agent.',
		payload: {
			run_id: 'Its run.',
			prompt: 'Its prompt; cut where it is long.',
			wait: 'Whether the parent waits for it.',
		},
	},
	'subagent.completed': {
		tells: 'A sub-agent ended with a result.',
		payload: {
			run_id: 'Its run.',
		},
	},
	'subagent.failed': {
		tells: 'A sub-agent ended with an error.',
		payload: {
			run_id: 'Its run.',
			code: 'The code of its error; `stopped` where it was stopped.',
		},
	},
	'security.violation': {
		tells: 'An attempt to do what is not allowed was blocked.',
		payload: {
			'kind?': 'What was tried: `undeclared`, `address_refused`, `skill_changed` or `webhook_signature`.',
			'reason?':
				'The same, of channels and MCP servers: `channel_refused`, `pairing_codes`, `mcp_refused` or `mcp_tool_changed`.',
			message: 'What was blocked, and why.',
			'what?': 'What it was about, such as a host.',
			'skill?': 'The name of the skill.',
			'skill_id?': 'The id of the revision.',
			'server?': "The MCP server's name.",
			'mcp_id?': "The MCP server's id.",
			'tools?': 'The MCP tools that are held back.',
			'transport?': "The MCP server's transport.",
			'command?': 'The program that was to start.',
			'args?': 'Its arguments.',
			'url?': 'The address that was to be called.',
			'type?': 'The type of the channel.',
			'channel_id?': 'The channel.',
			'secret?': 'The secret that was named.',
			'token_id?': 'The token of the caller; null: a local caller without one.',
			'slug?': 'The webhook.',
			'delivery_id?': 'The delivery in the log of the webhook; null: not kept there.',
			'source_ip?': 'The address that it came from.',
			'untold?': 'How many more there were since the last such event.',
		},
	},
	'security.redacted': {
		tells: 'A secret was taken out of something that would have shown it.',
		payload: {
			secret: "The secret's name.",
			secret_id: "The secret's id.",
			sink: 'What would have shown it: `event`, `record`, `response`, `log`, `model`, `stream` or `message`.',
			count: 'How often.',
		},
	},
	'channel.created': {
		tells: 'A channel was created.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
		},
	},
	'channel.updated': {
		tells: 'A channel was changed.',
		payload: {
			channel_id: 'The channel.',
			fields: 'What changed.',
		},
	},
	'channel.deleted': {
		tells: 'A channel was deleted.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
		},
	},
	'channel.connected': {
		tells: 'A channel is connected to its platform.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
			bot: 'The name of the bot there.',
		},
	},
	'channel.disconnected': {
		tells: 'A channel lost its platform and connects again.',
		payload: {
			channel_id: 'The channel.',
			type: 'Its type, such as `chat_a`.',
			error: 'Why, or null.',
		},
	},
	'channel.paired': {
		tells: 'A chat was bound to an agent.',
		payload: {
			channel_id: 'The channel.',
			binding_id: 'The binding.',
			external_chat_id: 'The chat, as the platform calls it.',
			via: '`code` or `request`.',
		},
	},
	'channel.unpaired': {
		tells: 'A chat was taken from its agent.',
		payload: {
			channel_id: 'The channel.',
			binding_id: 'The binding.',
			external_chat_id: 'The chat, as the platform calls it.',
		},
	},
	'channel.error': {
		tells: 'A channel met an error.',
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
		tells: 'A message came in by a channel.',
		payload: {
			channel_id: 'The channel.',
			chat_id: 'The chat.',
			'thread_id?': 'The thread in it.',
			message_id: 'The message, as the platform calls it.',
			'run_id?': 'The run that it led to, where the event is not part of that run.',
		},
	},
	'channel.message_sent': {
		tells: 'A message went out by a channel.',
		payload: {
			channel_id: 'The channel.',
			run_id: 'The run that it answers.',
			chat_id: 'The chat.',
			'thread_id?': 'The thread in it.',
			message_ids: 'The messages, as the platform calls them.',
		},
	},
	'webhook.registered': {
		tells: 'An agent registered a webhook.',
		payload: {
			slug: 'The webhook.',
		},
	},
	'webhook.rotated': {
		tells: 'A webhook got a new token and secret.',
		payload: {
			slug: 'The webhook.',
		},
	},
	'webhook.deleted': {
		tells: 'A webhook was deleted.',
		payload: {
			slug: 'The webhook.',
		},
	},
	'webhook.accepted': {
		tells: 'A delivery to a webhook was accepted and started a run.',
		payload: {
			slug: 'The webhook.',
			delivery_id: 'The delivery in its log.',
			run_id: 'The run that it started.',
		},
	},
	'webhook.rejected': {
		tells: 'A delivery to a webhook was refused.',
		payload: {
			slug: 'The webhook.',
			delivery_id: 'The delivery in its log; null: not kept there.',
			source_ip: 'The address that it came from.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
			'untold?': 'How many more there were since the last such event.',
		},
	},
	'mcp.added': {
		tells: 'An agent was given an MCP server, whose program now runs or whose address is now called.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			transport: '`stdio`, `sse` or `http`.',
			'command?': 'The program, with stdio.',
			'args?': 'Its arguments.',
			'url?': 'The address, with the others.',
		},
	},
	'mcp.removed': {
		tells: 'An MCP server was taken away from an agent.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			transport: '`stdio`, `sse` or `http`.',
			'command?': 'The program, with stdio.',
			'args?': 'Its arguments.',
			'url?': 'The address, with the others.',
		},
	},
	'mcp.accepted': {
		tells: 'An operator accepted changed tools of an MCP server.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			transport: '`stdio`, `sse` or `http`.',
			'command?': 'The program, with stdio.',
			'args?': 'Its arguments.',
			'url?': 'The address, with the others.',
			tools: 'The tools that were accepted.',
		},
	},
	'mcp.connected': {
		tells: 'An MCP server is connected.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			protocol_version: 'The version of the protocol that both speak.',
			tools: 'How many tools it offers.',
		},
	},
	'mcp.disconnected': {
		tells: 'An MCP server is no longer connected.',
		payload: {
			server: "The server's name.",
			mcp_id: "The server's id.",
			status: 'What it is now: `disabled`, `reconnecting` or `error`.',
			reason: 'Why it ended.',
		},
	},
	'mcp.called': {
		tells: "An agent calls an MCP server's tool.",
		payload: {
			server: "The server's name.",
			tool: "The tool's own name at the server.",
			call_id: 'The call, unique in its run.',
			arguments: 'What it is called with, as JSON text; cut where it is long.',
		},
	},
	'mcp.result': {
		tells: "An MCP server's tool answered.",
		payload: {
			server: "The server's name.",
			tool: "The tool's own name at the server.",
			call_id: 'The call, unique in its run.',
			result: 'What the model is told, as text; cut where it is long.',
		},
	},
	'mcp.failed': {
		tells: "An MCP server's tool failed.",
		payload: {
			server: "The server's name.",
			tool: "The tool's own name at the server.",
			call_id: 'The call, unique in its run.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
	'agent.created': {
		tells: 'An agent was created.',
		payload: {
			persona: 'Whether it has one.',
			config: 'The settings that were given.',
		},
	},
	'agent.updated': {
		tells: 'An agent was changed.',
		payload: {
			fields: 'What changed.',
		},
	},
	'agent.deleted': {
		tells: 'An agent was deleted.',
		payload: {
			uid: 'Its inner id, under which its records were kept.',
		},
	},
	'agent.reset': {
		tells: 'An agent began a new session with an empty short-term memory.',
		payload: {
			session_id: 'The new session.',
		},
	},
	'token.created': {
		tells: 'An API token was created.',
		payload: {
			token_id: 'Its id.',
			scopes: 'What it may do.',
			expires_at: 'When it ends; null: never.',
		},
	},
	'token.revoked': {
		tells: 'An API token was revoked.',
		payload: {
			token_id: 'Its id.',
		},
	},
	'plugin.started': {
		tells: 'A plugin was switched on.',
		payload: {
			plugin: 'Its name.',
			generation: 'Counts the reloads that changed something.',
		},
	},
	'plugin.stopped': {
		tells: 'A plugin was switched off.',
		payload: {
			plugin: 'Its name.',
			generation: 'Counts the reloads that changed something.',
		},
	},
	'plugin.reloaded': {
		tells: 'A plugin was replaced, since its settings or its code changed.',
		payload: {
			plugin: 'Its name.',
			generation: 'Counts the reloads that changed something.',
		},
	},
	'plugin.failed': {
		tells: 'A plugin does not load or start.',
		payload: {
			plugin: 'Its name.',
			message: 'What is wrong, for people.',
		},
	},
	'config.reloaded': {
		tells: 'A change of the configuration is in force.',
		payload: {
			generation: 'Counts the reloads that changed something.',
		},
	},
	'config.rejected': {
		tells: 'A change of the configuration is invalid; the last good one stays in force.',
		payload: {
			message: 'What is wrong, for people.',
			'errors?': 'Each problem: `path` and `message`.',
		},
	},
	'backup.created': {
		tells: 'A backup was made, by request or by the schedule.',
		payload: {
			backup_id: 'Its id.',
			bytes: 'Size of the file.',
			records: 'How many records it holds.',
			head: 'Where the event log stood.',
			trigger: '`request` or `schedule`.',
			includes_key: "Whether the vault's key is in it.",
		},
	},
	'backup.failed': {
		tells: 'A backup could not be made.',
		payload: {
			trigger: '`request` or `schedule`.',
			message: 'What is wrong, for people.',
		},
	},
	'backup.removed': {
		tells: 'A backup was removed, on request or since newer scheduled ones took its place.',
		payload: {
			backup_id: 'Its id.',
			reason: '`request` or `retention`.',
		},
	},
	'gateway.started': {
		tells: 'The gateway is ready.',
		payload: {
			version: 'Of the gateway.',
			generation: 'Counts the reloads that changed something.',
		},
	},
	'gateway.stopping': {
		tells: 'The gateway stops.',
		payload: {},
	},
} as const satisfies Record<string, EventKind>

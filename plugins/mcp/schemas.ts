/** Schemas of requests about MCP servers, and of the responses. */
import { isAbsolute } from 'node:path'
import type { LanguageMessages, StringSchema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { agentName } from '../shared/agent-name.ts'

const TEXT_LIMIT = 4_096
const VALUE_LIMIT = 8_192

/** Parameters of the routes about one server. */
export interface ServerParams {
	id: string
	mcp_id: string
}

export const params = Joi.object({ id: agentName })
export const paramsOfServer = Joi.object({
	id: agentName,
	mcp_id: Joi.string()
		.max(64)
		.required()
		.description('Id of the MCP server.')
		.example('0197a4c2-6605-7376-91bb-f62738495a6b'),
})

const serverName = Joi.string()
	// With `__` in the name, or `_` at its end, its tools could have the same names as another server's tools.
	.pattern(/^[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_|$)){0,63}$/)
	.message('{#label} must be 1 to 64 of A-Z a-z 0-9 - _, begin with a letter or digit, and have single _ inside only')
	.description('Name of the server, unique for the agent; part of the names of its tools.')
	.example('files')

const secret = Joi.object({
	secret: Joi.string()
		.pattern(/^[A-Za-z0-9_.-]{1,128}$/, 'name of a secret')
		.required(),
}).description('The value of a secret for which the agent has a grant.')

const noNul = (text: StringSchema): StringSchema =>
	text.pattern(/^[^\0]*$/).message('{#label} must not contain a NUL character')

const command = noNul(Joi.string().min(1).max(TEXT_LIMIT))
	.custom((text: string, helpers) =>
		isAbsolute(text) || !/[/\\]/.test(text)
			? text
			: helpers.message({ custom: '{#label} must be the name of a program in PATH, or an absolute path' }),
	)
	.description('The program, by its name in PATH or by its absolute path. It is not started in a shell.')
	.example('npx')

const args = Joi.array()
	.items(noNul(Joi.string().allow('').max(TEXT_LIMIT)))
	.max(64)
	.description('Its arguments, passed literally.')

const env = Joi.object()
	.pattern(
		Joi.string().pattern(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/),
		Joi.alternatives(noNul(Joi.string().allow('').max(VALUE_LIMIT)), secret),
	)
	.max(64)
	.description(
		'Environment variables, in addition to a few safe ones of the gateway and those for proxies and certificates; `{{secret:NAME}}` in a value is replaced by a secret.',
	)
	.messages({
		'object.unknown':
			'{#label} is not a valid name of a variable: use only A-Z a-z 0-9 _, and no digit at its beginning',
	})

const url = Joi.string()
	.max(2_048)
	.custom((text: string, helpers) => {
		const parsed = URL.parse(text)
		if (!parsed || !['http:', 'https:'].includes(parsed.protocol))
			return helpers.message({ custom: '{#label} must be an address that begins with http:// or https://' })
		if (parsed.username !== '' || parsed.password !== '')
			return helpers.message({ custom: '{#label} must not contain a user or password; use headers' })
		if (parsed.hash !== '') return helpers.message({ custom: '{#label} must not contain a "#"' })
		return text
	})
	.description('Address of the server; `{{secret:NAME}}` in its path or query is replaced by a secret, URL-encoded.')
	.example('https://example.com/mcp')

/** Headers that the transport or HTTP itself sets. */
const OWN_HEADERS =
	/^(accept|accept-encoding|connection|content-.*|expect|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i

const headers = Joi.object()
	.pattern(
		Joi.string()
			.pattern(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/)
			.pattern(OWN_HEADERS, { invert: true }),
		Joi.alternatives(
			Joi.string()
				.max(VALUE_LIMIT)
				.pattern(/^[\x20-\x7e]+$/, 'printable ASCII'),
			secret,
		),
	)
	.max(32)
	.description('Headers of every request, such as `{"Authorization": "Bearer {{secret:NAME}}"}`.')
	.messages({ 'object.unknown': '{#label} cannot be set: HTTP or MCP sets this header, or the name is not valid' })

const auth = Joi.object({
	type: Joi.valid('none', 'oauth')
		.required()
		.description(
			'`none`: no tokens are sent; `oauth`: by OAuth, even if the documents of the server do not mention it.',
		),
	grant: Joi.valid('authorization_code', 'client_credentials').description(
		'`authorization_code`, the default: a person signs in; `client_credentials`: the gateway signs in itself, with `client_id` and a secret or key.',
	),
	client_id: Joi.string()
		.max(2_048)
		.description(
			'A client that was registered beforehand, or the address of a client ID metadata document. Default: the gateway registers itself.',
		),
	client_secret: secret,
	private_key: secret.description('PEM (PKCS #8), RSA or EC: the client signs its requests (private_key_jwt).'),
	scopes: Joi.array()
		.items(Joi.string().pattern(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, 'a scope'))
		.max(64)
		.unique()
		.description('The scopes to request if the server does not specify any. Default: all scopes that it lists.'),
	wait: Joi.boolean().description('A call of a tool pauses its run until somebody has signed in. Default false.'),
})
	.oxor('client_secret', 'private_key')
	.when('.grant', {
		is: 'client_credentials',
		then: Joi.object({ client_id: Joi.required() }).or('client_secret', 'private_key'), // oxlint-disable-line unicorn/no-thenable -- joi's word
	})
	.description('How the gateway signs in. Absent: by OAuth if the first 401 of the server leads to it.')
	.example({ type: 'oauth', scopes: ['issues:read'] })

const sampling = Joi.boolean().description(
	"It may send its own requests to the agent's model during calls, within `mcp.max_samplings_per_run` and `mcp.max_sampling_tokens`. Needs the scope `*`. Default false.",
)
const roots = Joi.array()
	.items(
		Joi.string()
			.max(2_048)
			.custom((address: string, helpers) =>
				URL.parse(address)?.protocol === 'file:' && /^file:\/\/\//i.test(address)
					? address
					: helpers.message({ custom: '{#label} must be an address such as file:///srv/books' }),
			),
	)
	.max(32)
	.unique()
	.description(
		'Folders in which it should work, as `file:///` addresses. They do not confine it. Needs the scope `*`. Default: none.',
	)
	.example(['file:///srv/books'])

const common = { name: serverName.required() }
const allowances = { sampling, roots }
const transport = (...names: string[]): StringSchema =>
	Joi.string()
		.valid(...names)
		.required()
		.description('`stdio` starts a program; `sse` is Streamable HTTP or the older SSE; `http` is Streamable HTTP only.')

/** The message for a field that belongs to another transport; joi's message for any other. */
const belongs = (fields: readonly string[], where: string): LanguageMessages => {
	const isOne = fields.map((field) => `#child == "${field}"`).join(' || ')
	return { 'object.unknown': `{#label} {if(${isOne}, "goes with ${where}", "is not allowed")}` }
}
const needed = { 'any.required': 'transport {transport} needs {#label}' }

const forStdio = Joi.object({
	...common,
	transport: transport('stdio'),
	command: command.required().messages(needed),
	args,
	env,
	...allowances,
}).messages(belongs(['url', 'headers', 'auth'], 'sse or http'))
const forWeb = Joi.object({
	...common,
	transport: transport('sse', 'http'),
	url: url.required().messages(needed),
	headers,
	auth,
	...allowances,
}).messages(belongs(['command', 'args', 'env'], 'stdio'))
/** Checks only the transport, so that an unknown transport does not cause errors about other fields. */
const unknownTransport = Joi.object({ ...common, transport: transport('stdio', 'sse', 'http') }).unknown()

export const newServer = Joi.alternatives().conditional('.transport', {
	switch: [
		// oxlint-disable unicorn/no-thenable -- joi's word; nobody awaits these
		{ is: 'stdio', then: forStdio },
		{ is: Joi.valid('sse', 'http'), then: forWeb },
		// oxlint-enable unicorn/no-thenable
	],
	otherwise: unknownTransport,
})

/** The same rules for the API description, without the error messages. */
export const shownNewServer = Joi.alternatives(forStdio, forWeb)
	.required()
	.example({
		name: 'files',
		transport: 'stdio',
		command: 'npx',
		args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/books'],
	})

const shown = {
	id: Joi.string().required().example('0197a4c2-6605-7376-91bb-f62738495a6b'),
	name: serverName.required(),
	transport: Joi.valid('stdio', 'sse', 'http').required(),
	status: Joi.valid('connecting', 'connected', 'reconnecting', 'needs_login', 'error', 'disabled')
		.required()
		.example('connected')
		.description(
			'`connecting`: for the first time since it was added, switched on or restarted; `connected`: its tools can be called; `reconnecting`: the connection was lost or failed and is retried automatically, a program at most 5 times in a row, an address indefinitely and at least every 60 s; `needs_login`: a person must sign in (POST …/login); `error`: not retried until it is restarted, its secrets change or a run needs it; `disabled`: switched off.',
		),
	held_tools: Joi.number()
		.integer()
		.min(1)
		.description('Changed tools that are held back until they are accepted. Absent: none.'),
}
const statusDetail = Joi.string().description(
	'One sentence about the current connection, with the last error if there is one.',
)
export const view = Joi.object(shown).id('McpServer')
export const added = Joi.object({ ...shown, status_detail: statusDetail }).id('McpServerAdded')

const names = Joi.object()
	.pattern(Joi.string(), secret.allow(null))
	.description('By name: the secret that the value comes from, or null. Values are never shown.')
const text = Joi.string().allow('')
const anything = Joi.object().unknown()
const iso = Joi.string().isoDate()

const tool = Joi.object({
	name: text.required(),
	tool: text.required().description('The name by which agents call it.'),
	description: text.required(),
	input_schema: anything.required(),
	annotations: anything.required(),
	digest: text.required().description('sha256 over the definition.'),
	held: Joi.boolean()
		.required()
		.description(
			'Its definition differs from the accepted one: agents do not get it until POST …/accept names it or accepts all.',
		),
	accepted: Joi.object({
		description: text.required(),
		input_schema: anything.required(),
		annotations: anything.required(),
	}).description('The accepted definition of a tool that is held.'),
}).id('McpTool')

export const details = Joi.object({
	...shown,
	command: text,
	args: Joi.array().items(text),
	url: text,
	env: names,
	headers: names,
	auth: auth.description('As in the request that added it.'),
	login: Joi.object({
		issuer: text.required().description('The authorization server.'),
		scopes: Joi.array().items(text).required(),
		expires_at: iso
			.allow(null)
			.required()
			.description('Expiry of the access token; null if the authorization server does not specify it.'),
		signed_in_at: iso.allow(null).required().description('Null: the gateway signed in itself.'),
		renewable: Joi.boolean().required().description('Whether it is renewed without a person.'),
	})
		.allow(null)
		.description('Tokens that the gateway has for it; null if nobody has signed in. Absent for a program.'),
	sampling: Joi.boolean().required().description("Whether it may send its own requests to the agent's model."),
	roots: Joi.array().items(text).required().description('Folders in which it should work.'),
	status_detail: statusDetail.required(),
	last_error: Joi.object({ at: iso.required(), message: text.required() })
		.allow(null)
		.required()
		.description(
			'The last attempt or connection that failed: when, and what to change. It remains after a reconnect; null if nothing has failed.',
		),
	failures: Joi.number().integer().required().description('Number of failures in a row.'),
	server: Joi.object({ name: text.required(), version: text.required(), title: text }).allow(null).required(),
	protocol_version: text.allow(null).required(),
	instructions: text.allow(null).required(),
	connected_at: iso.allow(null).required(),
	pid: Joi.number().integer().allow(null).required(),
	stderr: text.required().description('The end of what its process wrote to standard error, at most 64 KiB.'),
	tools: Joi.array().items(tool).required(),
	not_offered: Joi.array().items(text).required().description('One sentence for each listed tool that is not offered.'),
	created_at: iso.required(),
})
	.id('McpServerDetails')
	.example({
		id: '0197a4c2-6605-7376-91bb-f62738495a6b',
		name: 'files',
		transport: 'stdio',
		status: 'connected',
		command: 'npx',
		args: ['-y', '@modelcontextprotocol/server-filesystem', '/srv/books'],
		env: {},
		sampling: false,
		roots: [],
		status_detail: 'connected by stdio',
		last_error: null,
		failures: 0,
		server: { name: 'secure-filesystem-server', version: '0.2.0' },
		protocol_version: '2025-11-25',
		instructions: null,
		connected_at: '2026-11-02T09:30:01.000Z',
		pid: 4711,
		stderr: '',
		tools: [
			{
				name: 'read_text_file',
				tool: 'mcp__files__read_text_file',
				description: 'Reads a file as text.',
				input_schema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
				annotations: { readOnlyHint: true },
				digest: 'c8b66b5ca6b863f3d32c8b6e0a85bce115997fedecfef1684e2e5d4f47b2e44d',
				held: false,
			},
		],
		not_offered: [],
		created_at: '2026-11-02T09:30:00.000Z',
	})

/**
 * What the gateway says names routes, for every client; a person at the terminal has commands. The same message with the
 * commands of `svc` in place of the routes and primitives that it has one for: `POST /v1/vault/secrets stores one` becomes
 * `"svc vault set NAME" stores one`.
 */
export function inCommands(message: string): string {
	return message
		.replace(route, (found, method: string, path: string) => commandFor(method, path) ?? found)
		.replace(primitive, quoted('svc webhooks rotate AGENT SLUG'))
}

/** Segments of `{}` are taken over in place of the words in capitals, in their order; the others stay for the user to fill in. */
const commands: [method: string, path: string, command: string][] = [
	['GET', '/v1/plugins', 'svc plugins'],
	['GET', '/v1/agents', 'svc agents list'],
	['POST', '/v1/agents', 'svc agents create NAME'],
	['GET', '/v1/agents/{}', 'svc agents show AGENT'],
	['PATCH', '/v1/agents/{}', 'svc agents update AGENT'],
	['DELETE', '/v1/agents/{}', 'svc agents delete AGENT'],
	['POST', '/v1/agents/{}/reset', 'svc agents reset AGENT'],
	['POST', '/v1/agents/{}/stop', 'svc agents stop AGENT'],
	['GET', '/v1/agents/{}/questions', 'svc questions list AGENT'],
	['POST', '/v1/agents/{}/ask-responses/{}', 'svc questions answer AGENT QUESTION'],
	['GET', '/v1/agents/{}/skills', 'svc skills list AGENT'],
	['GET', '/v1/agents/{}/mcp', 'svc mcp list AGENT'],
	['GET', '/v1/agents/{}/memory', 'svc memory list AGENT'],
	['GET', '/v1/agents/{}/memory/compactions', 'svc memory compactions AGENT'],
	['GET', '/v1/runs/{}', 'svc runs show RUN'],
	['POST', '/v1/runs/{}/cancel', 'svc runs cancel RUN'],
	['GET', '/v1/auth/tokens', 'svc tokens list'],
	['POST', '/v1/auth/tokens', 'svc tokens create'],
	['GET', '/v1/vault/secrets', 'svc vault list'],
	['POST', '/v1/vault/secrets', 'svc vault set NAME'],
	['PUT', '/v1/vault/secrets/{}', 'svc vault set NAME'],
	['GET', '/v1/vault/grants', 'svc grants list'],
	['POST', '/v1/vault/grants', 'svc grants add AGENT SECRET'],
	['DELETE', '/v1/vault/grants/{}', 'svc grants revoke GRANT'],
	['GET', '/v1/channels', 'svc channels list'],
	['POST', '/v1/channels/pair', 'svc channels pair CODE'],
	['GET', '/v1/channels/{}/bindings', 'svc channels bindings CHANNEL'],
	['DELETE', '/v1/channels/{}/bindings/{}', 'svc channels unbind CHANNEL CHAT'],
]

/** Ends in front of the punctuation of a sentence. */
const route = /\b(GET|POST|PUT|PATCH|DELETE) (\/v1\/[\w./{}-]*[\w}])(?![\w/?=])/g
/** What an agent would call, told to a person. In lists of tools it stays what it is. */
const primitive = /\bwebhook\.rotate(?= gives )/g

function commandFor(method: string, path: string): string | undefined {
	const given = path.split('/')
	for (const [one, pattern, command] of commands) {
		const parts = pattern.split('/')
		if (one !== method || parts.length !== given.length) continue
		if (parts.some((part, n) => part !== '{}' && part !== given[n])) continue
		const values = given.filter((_, n) => parts[n] === '{}')
		// An id of the API is not what the command takes: it goes by the name.
		const filled = command.endsWith(' NAME')
			? command
			: command.replace(/\b[A-Z]+\b/g, (word) => fit(values.shift()) ?? word)
		return quoted(filled)
	}
	return undefined
}

/** Undefined for what is a placeholder, or must not be pasted as a word of a command. */
function fit(value: string | undefined): string | undefined {
	return value !== undefined && /^\w[\w.-]*$/.test(value) ? value : undefined
}

function quoted(command: string): string {
	return `"${command}"`
}

import t from 'tap'
import { warningsOf } from '../../config/read.ts'
import { readConfig } from '../../core/host/config.ts'

type Test = Pick<typeof t, 'testdir' | 'throws'>

/** The resolved value of a plugin's setting. */
function text(test: Test, value: string, env: Record<string, string> = {}): unknown {
	const yaml = `plugins: { a: { value: ${JSON.stringify(value)} } }`
	const config = readConfig({ home: test.testdir({ config: { 'gateway.yaml': yaml } }), env })
	return (config.plugins.a as { value: unknown }).value
}

function refused(test: Test, yaml: string, message: RegExp): void {
	const home = test.testdir({ config: { 'gateway.yaml': yaml } })
	test.throws(() => readConfig({ home, env: {} }), { code: 'config_invalid', message }, yaml)
}

void t.test('a reference anywhere in a text is replaced with the value of the variable', (t) => {
	t.equal(text(t, '${A}', { A: 'x' }), 'x')
	t.equal(text(t, 'a ${A} b ${B_2} c', { A: 'x', B_2: 'y' }), 'a x b y c')
	t.equal(text(t, '[${A}]', { A: '' }), '[]', 'a variable that is set may be empty')
	t.end()
})

void t.test('the default applies if the variable is unset or empty', (t) => {
	t.equal(text(t, '${A:-x y}'), 'x y')
	t.equal(text(t, '${A:-}'), '')
	t.equal(text(t, '${A:-x}', { A: '' }), 'x')
	t.equal(text(t, '${A:-x}', { A: 'y' }), 'y')
	t.equal(text(t, '${A:-http://a:-b}'), 'http://a:-b')
	t.end()
})

void t.test('$${ is an escaped ${', (t) => {
	t.equal(text(t, '$${A}', { A: 'x' }), '${A}')
	t.equal(text(t, '$A and $$ and {A}', { A: 'x' }), '$A and $$ and {A}')
	t.end()
})

void t.test('the value of a variable is not parsed as YAML or as a reference', (t) => {
	t.equal(text(t, '${A}', { A: '${B}', B: 'x' }), '${B}')
	t.equal(text(t, '${A}', { A: 'x }\nauth_mode: token' }), 'x }\nauth_mode: token')
	t.equal(text(t, '${A}', { A: '$&' }), '$&')
	t.end()
})

void t.test('an unset variable is refused with line and column', (t) => {
	refused(
		t,
		'providers:\n  main:\n    kind: openai\n    model: m\n    api_key: ${NO_SUCH_KEY}\n',
		/gateway\.yaml:5:14: providers\.main\.api_key: the environment variable NO_SUCH_KEY is not set; set it, or write \$\{NO_SUCH_KEY:-default\}$/,
	)
	t.end()
})

void t.test('a required setting with an unset variable is reported once', (t) => {
	refused(t, 'providers:\n  main:\n    kind: openai\n    model: ${NO_SUCH}\n', /^[^\n]*:4:12: [^\n]*$/)
	t.end()
})

void t.test('a "${" that does not begin a reference is refused', (t) => {
	for (const value of ['${}', '${1A}', '${A B}', '${A-x}', '${A', 'a ${', '${toString()}']) {
		refused(t, `log: { level: ${JSON.stringify(value)} }`, /:1:15: log\.level: has a "\$\{" that is not a reference/)
	}
	t.end()
})

void t.test('names inherited from Object are not variables', (t) => {
	refused(t, 'server: { host: "${constructor}" }', /the environment variable constructor is not set/)
	t.end()
})

void t.test('a reference may provide a number or a boolean', (t) => {
	const yaml =
		'server:\n  port: ${PORT}\nworkers: { threads: "${N:-3}" }\nplugins: { a: "${ON}", b: { enabled: "${ON}", n: "${N:-3}" } }'
	const home = t.testdir({ config: { 'gateway.yaml': yaml } })
	const config = readConfig({ home, env: { PORT: '8080', ON: 'false' } })
	t.match(config, {
		server: { port: 8080 },
		workers: { threads: 3 },
		plugins: { a: false, b: { enabled: false, n: '3' } },
	})
	for (const PORT of ['80 ', '0x50', '1e3', 'http', '']) {
		t.throws(
			() => readConfig({ home, env: { PORT, ON: 'true' } }),
			{ message: /:2:9: server\.port: must be a whole number/ },
			PORT,
		)
	}
	t.throws(() => readConfig({ home, env: { PORT: '80.5', ON: 'true' } }), {
		message: /:2:9: server\.port: must be a whole number/,
	})
	t.end()
})

void t.test('a placeholder as secret or address causes a warning with line and column', (t) => {
	const warnings = (value: string, env: Record<string, string> = {}): string[] => {
		const yaml = `providers:\n  main: ${value}\n`
		return warningsOf(readConfig({ home: t.testdir({ config: { 'gateway.yaml': yaml } }), env }))
	}
	const provider = (setting: string): string => `{kind: openai, model: m, ${setting}}`
	for (const key of ['$NAME', '"%NAME%"', '"{{NAME}}"', '<your-key>']) {
		t.match(
			warnings(provider(`api_key: ${key}`)),
			[
				/gateway\.yaml:2:43: providers\.main\.api_key: looks like a placeholder, but is used unchanged; .*write \$\{NAME\}$/,
			],
			key,
		)
	}
	for (const header of ['$NAME', 'Bearer $NAME', '"{{ secret:NAME }}"'])
		t.match(
			warnings(provider(`headers: {X-Route: ${header}}`)),
			[/2:53: providers\.main\.headers\.X-Route: looks like/],
			header,
		)
	t.match(warnings(provider('base_url: https://$HOST/v1')), [/2:44: providers\.main\.base_url: looks like/])
	for (const address of ['https://<your-host>', 'http://{{HOST}}:80/v1', 'https://gateway.%DOMAIN%'])
		t.match(
			warnings(`{kind: offline}\nserver: {public_url: '${address}'}`),
			[/3:22: server\.public_url: looks like/],
			address,
		)
	for (const setting of [
		'api_key: sk$NAME',
		'api_key: a<b>c',
		'api_key: $1',
		'api_key: {secret: NAME}',
		'api_key: "${NAME}"',
		'base_url: https://example.com/%AB%CD/$metadata',
	])
		t.strictSame(warnings(provider(setting), { NAME: '<text>' }), [], setting)
	t.strictSame(warnings('{kind: openai, model: <m>}'), [], 'neither a secret nor an address')
	const plugin = (name: string, setting: string): string[] =>
		warnings(`{kind: offline}\nplugins: {${name}: {${setting}}}`)
	for (const address of ['nats://$USER:x@h', 'nats://u:<password>@h:4222', 'nats://u:x@%HOST%:4222'])
		t.match(plugin('a', `url: '${address}'`), [/plugins\.a\.url: looks like/], address)
	for (const address of [
		'nats://us%C3%A4r:p%C3%A9@h',
		'nats://u:pa$word@h',
		'nats://u:a<b>c@h',
		'http://%C3%A4%C3%B6.example',
	])
		t.strictSame(plugin('a', `url: '${address}'`), [], address)
	t.strictSame(plugin('tokenizer', "first: '<s>'"), [], "a plugin's name does not make its settings secrets")
	t.strictSame(plugin('a', "stop_tokens: ['<|end|>']"), [], 'a token of a model')
	t.end()
})

void t.test('the values of variables have a common size limit', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': `plugins: { a: { b: "${'${BIG}'.repeat(50)}" } }` } })
	t.throws(() => readConfig({ home, env: { BIG: 'x'.repeat(100_000) } }), { message: /more than 4 MiB/ })
	t.end()
})

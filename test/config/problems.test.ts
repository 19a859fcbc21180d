import fc from 'fast-check'
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { exampleFile, switchedOn } from '../../docs/make/example.ts'
import { configFile } from '../../config/home.ts'
import { composition, readConfig } from '../../core/host/config.ts'
import { isFault } from '../../core/errors.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 100)
const home = t.testdir({ config: {} })
const file = configFile(home)

/** The lines of the error message, without the file's name. */
function problems(yaml: string, env: Record<string, string> = {}): string[] {
	writeFileSync(file, yaml)
	try {
		readConfig({ home, env })
	} catch (error) {
		if (isFault(error, 'config_invalid')) return error.message.replaceAll(`${file}:`, '').split('\n')
		throw error
	}
	throw new Error('was accepted')
}

void t.test('every problem of a file has its own line, in the order of the file', (t) => {
	const yaml = [
		'server:',
		'  prot: 8080',
		'  port: "8080"',
		'auth_mode: tokens',
		'runs:',
		'  limits: { steps: 0, tokens: 1.5, wall_time_s: .inf }',
		'log: loud',
	].join('\n')
	t.same(problems(yaml), [
		'2:3: server.prot: is not a known setting; did you mean "port"?',
		'3:9: server.port: must be a whole number, without quotes',
		'4:12: auth_mode: must be one of loopback, token; did you mean "token"?',
		'6:20: runs.limits.steps: must be at least 1',
		'6:31: runs.limits.tokens: must be a whole number',
		'6:49: runs.limits.wall_time_s: must be a whole number',
		'7:6: log: must be a map of settings',
	])
	t.end()
})

void t.test('the error also lists the problems as data', (t) => {
	writeFileSync(file, 'server: { port: 70000 }\nfoo: 1')
	t.throws(() => readConfig({ home, env: {} }), {
		code: 'config_invalid',
		errors: [
			{ path: 'server.port', message: 'must be at most 65535' },
			{ path: 'foo', message: 'is not a known setting' },
		],
	})
	t.end()
})

void t.test('a problem names the full path of the file', (t) => {
	writeFileSync(file, 'foo: 1')
	t.throws(() => readConfig({ home, env: {} }), { message: `${file}:1:1: foo: is not a known setting` })
	t.end()
})

void t.test('an unknown setting is compared with its neighbours, then with other sections', (t) => {
	t.same(problems('server: { allowedHosts: [] }'), [
		'1:11: server.allowedHosts: is not a known setting; did you mean "allowed_hosts"?',
	])
	t.same(problems('port: 1'), ['1:1: port: is not a known setting; did you mean "server.port"?'])
	t.same(problems('server: { auth_mode: token }'), [
		'1:11: server.auth_mode: is not a known setting; did you mean "auth_mode"?',
	])
	t.same(problems('providers: { a: { kind: openai, model: m, baseurl: x } }'), [
		'1:43: providers.a.baseurl: is not a known setting; did you mean "base_url"?',
	])
	t.same(problems('zzzzzz: 1'), ['1:1: zzzzzz: is not a known setting'])
	t.end()
})

void t.test('a setting without a value is refused', (t) => {
	t.same(problems('server:\n  port:\nlog:\n  level:\n'), [
		'2:8: server.port: has no value; give it one or remove the line',
		'4:9: log.level: has no value; give it one or remove the line',
	])
	t.end()
})

void t.test('a provider is checked against the settings of its kind', (t) => {
	const yaml = [
		'providers:',
		'  a: { kind: openia, model: 3 }',
		'  b: {}',
		'  c: { kind: openai }',
		'  d: { kind: offline, model: m }',
		'  e: text',
		'  f g: { kind: offline }',
		'default_provider: d',
	].join('\n')
	const found = problems(yaml)
	t.equal(found.length, 6)
	t.match(found, [
		/^2:14: providers\.a\.kind: must be one of openai, .*, offline; did you mean "openai"\?$/,
		/^3:3: providers\.b\.kind: is missing; it must be one of openai, .*, offline$/,
		'4:3: providers.c.model: is missing; give the name of a model that this server has',
		'5:23: providers.d.model: is not a setting of this kind',
		'6:6: providers.e: must be a map of settings',
		'7:3: providers.f g: is not a name; use 1 to 64 of letters, digits, "-", "_" and "."',
	])
	t.end()
})

void t.test('addresses of providers are checked', (t) => {
	const wrong = (base_url: string): string =>
		problems(`providers: { a: { kind: openai, model: m, base_url: "${base_url}" } }`)[0] ?? ''
	for (const url of ['ftp://example.com', 'example.com/v1', 'http://', 'http://a b', 'http://[::', '/v1'])
		t.match(wrong(url), 'must be an address such as', url)
	t.match(wrong('https://user:word@example.com/v1'), 'must not contain a user or password')
	t.match(wrong('https://example.com/v1?key=1'), 'without "?" or "#"')
	t.end()
})

void t.test('an API key must be text or the name of a secret', (t) => {
	const wrong = (api_key: string): string[] =>
		problems(`providers: { a: { kind: openai, model: m, api_key: ${api_key} } }`)
	for (const key of ['7', '[x]', 'true'])
		t.same(wrong(key), ['1:52: providers.a.api_key: must be text, or secret: NAME for a secret of the vault'], key)
	t.same(wrong('{}'), ['1:43: providers.a.api_key.secret: is missing'])
	t.match(wrong('{ secret: "a b" }'), [/^1:62: providers\.a\.api_key\.secret: must be 1 to 128 of letters/])
	t.match(wrong('{ secret: 7 }'), [/providers\.a\.api_key\.secret: must be text/])
	t.match(wrong('{ secret: A, value: b }'), [/^1:65: providers\.a\.api_key\.value: is not a known setting/])
	t.end()
})

void t.test('several providers need a default, and the names in use must exist', (t) => {
	const two = 'providers:\n  one: { kind: offline }\n  two: { kind: offline }\n'
	t.same(problems(two), [
		'2:3: default_provider: is missing; with several providers it must name one of them: one, two',
	])
	t.same(problems(`${two}default_provider: tow\nfallback: [one, three]`), [
		'4:19: default_provider: no such provider; there are one, two; did you mean "two"?',
		'5:17: fallback.1: no such provider; there are one, two.',
	])
	t.same(problems('default_provider: openai'), ['1:19: default_provider: no such provider; there is offline.'])
	t.end()
})

void t.test('a text or a list in place of a number is refused', (t) => {
	t.same(problems('store: { replicas: three }'), ['1:20: store.replicas: must be one of 1, 3, 5'])
	t.same(problems('server: { port: "80" }'), ['1:17: server.port: must be a whole number, without quotes'])
	t.same(problems('server: { port: [80] }'), ['1:17: server.port: must be a whole number'])
	t.end()
})

void t.test('a host name with a scheme, port or path is refused', (t) => {
	for (const host of ['http://a', 'a:80', 'a/b', 'a b', '.a', 'a..b', '']) {
		t.equal(problems(`server: { allowed_hosts: ["${host}"] }`).length, 1, host)
	}
	t.end()
})

void t.test('limits that contradict each other are reported where they are set', (t) => {
	t.same(problems('skills: { memory_mib: 512 }'), [
		'1:23: skills.memory_mib: skills.process_mib (256) must be at least 64 above skills.memory_mib (512)',
	])
	t.same(problems('mcp: { max_call_s: 30 }'), [
		'1:20: mcp.max_call_s: mcp.call_timeout_s (60) must be at most mcp.max_call_s (30)',
	])
	t.throws(() => problems('skills: { memory_mib: 512, process_mib: 1024 }'), /was accepted/)
	t.end()
})

void t.test('mcp.allowed_hosts accepts hosts, and no scheme, path or range', (t) => {
	for (const host of ['http://10.0.0.1', '10.0.0.0/8', 'a@b', 'wiki.lan/x', ''])
		t.match(problems(`mcp: { allowed_hosts: [${JSON.stringify(host)}] }`)[0], /allowed_hosts/, host)
	t.throws(
		() => problems('mcp: { allowed_hosts: [10.0.0.5, "wiki.lan:8080", "fd00::1", "[fd00::1]:80"] }'),
		/was accepted/,
	)
	t.end()
})

void t.test('the two ports must differ', (t) => {
	t.same(problems('legacy: { port: 3000 }'), ['1:17: legacy.port: server.port and legacy.port must differ'])
	t.same(problems('server: { port: 17890 }'), ['1:17: server.port: server.port and legacy.port must differ'])
	t.same(problems('# nothing', { SVC_PORT: '17890' }), [
		'environment: SVC_PORT: server.port and legacy.port must differ',
	])
	t.end()
})

void t.test('a plugin is true, false or a map of settings, and its name must be valid for a folder', (t) => {
	t.same(problems('plugins: { a: 1, b: { enabled: 1 }, c: { path: 1 }, .d: true, e/f: true }'), [
		'1:15: plugins.a: must be true, false or a map of settings',
		'1:32: plugins.b.enabled: must be true or false',
		'1:48: plugins.c.path: must be text; put it in quotes',
		'1:53: plugins..d: is not a name; use 1 to 64 of letters, digits, "-", "_" and ".", beginning with a letter or digit',
		'1:63: plugins.e/f: is not a name; use 1 to 64 of letters, digits, "-", "_" and ".", beginning with a letter or digit',
	])
	t.end()
})

void t.test('an invalid environment variable is reported by name, without a line of the file', (t) => {
	const env = { SVC_PORT: '3000x', SVC_LEGACY_PORT: '-1', SVC_HOST: 'a b', SVC_LOG_LEVEL: 'inf', OPENAI_API_KEY: 'k\n' }
	t.same(problems('server: { port: 8080 }', env).toSorted(), [
		'environment: OPENAI_API_KEY: must be printable ASCII without spaces or line breaks',
		'environment: SVC_HOST: must be a host name or IP address without scheme, port or path',
		'environment: SVC_LEGACY_PORT: must be a whole number',
		'environment: SVC_LOG_LEVEL: must be one of trace, debug, info, warn, error, fatal, silent; did you mean "info"?',
		'environment: SVC_PORT: must be a whole number',
	])
	t.end()
})

void t.test('YAML features beyond plain settings are refused', (t) => {
	t.same(problems('a: &x 1\nb: *x'), [
		'1:4: anchors are not supported; remove "&x"',
		'2:4: aliases are not supported; write the value itself',
	])
	t.match(problems('plugins: { a: { <<: { b: 1 } } }'), [/^1:17: plugins\.a\.<<: merge keys are not supported/])
	t.match(problems('plugins: { a: { __proto__: { b: 1 } } }'), [/^1:17: plugins\.a\.__proto__: is not a name/])
	for (const tag of ['!mine 1', '!!binary aGk=', '!!set {}', '!!timestamp 2001-01-01']) {
		t.match(problems(`plugins: { a: { b: ${tag} } }`), [/^1:20: tags are not supported/], tag)
	}
	t.match(problems('server: {}\n---\nlog: {}'), [/^2:1: the file must contain one document/])
	t.match(problems('? [a]\n: 1'), [/^1:3: a name must be plain text/])
	t.end()
})

void t.test('the booleans of YAML 1.1 are text', (t) => {
	t.same(problems('plugins: { a: yes }'), ['1:15: plugins.a: must be true, false or a map of settings'])
	t.same(problems('%YAML 1.1\n---\nplugins: { a: on }'), ['3:15: plugins.a: must be true, false or a map of settings'])
	t.end()
})

void t.test('a repeated setting is refused at its second occurrence', (t) => {
	t.same(problems('server:\n  port: 1\n  host: a\n  port: 2\nserver: {}'), [
		'4:3: server.port: occurs here a second time; keep one of the two',
		'5:1: server: occurs here a second time; keep one of the two',
	])
	t.end()
})

void t.test('a syntax error is explained in plain words', (t) => {
	const errors: [yaml: string, line: RegExp][] = [
		['server:\n\tport: 1', /^2:1: tabs cannot indent YAML/],
		['a: b: c', /^1:4: two settings on one line/],
		['server\nlog: {}', /^1:1: a ":" is missing/],
		['a: "x', /^1:6: a quote, a bracket or a space is missing/],
		['a: @x', /^1:4: a plain value cannot start with this/],
		['server: { port: ${PORT} }', /^1:18: does not fit here/],
		['- a', /^1:1: must be a map of settings/],
		['text', /^1:1: must be a map of settings/],
	]
	for (const [yaml, line] of errors) t.match(problems(yaml)[0], line, yaml)
	t.end()
})

void t.test('the number of words and symbols has a limit', (t) => {
	const list = (items: number): string => `plugins:\n  a: [${'1,'.repeat(items)}]`
	t.match(problems(list(60_000)), [/^2:99999: has more than 100,000 words and symbols up to here/])
	t.notMatch(problems(list(40_000)), [/words and symbols/])
	t.match(problems('['.repeat(1024 * 1024)), [/^1:100001: has more than 100,000 words and symbols/])
	t.end()
})

void t.test('nesting has a limit', (t) => {
	for (const depth of [100, 20_000]) {
		t.match(
			problems(`plugins: { a: { b: ${'['.repeat(depth)}${']'.repeat(depth)} } }`),
			[/nested more than 64 levels/],
			`${depth}`,
		)
	}
	t.end()
})

void t.test('only the first 50 problems are listed, and the others counted', (t) => {
	const lines = problems(Array.from({ length: 1000 }, (_, i) => `unheard_of_${i}: 1`).join('\n'))
	t.equal(lines.length, 51)
	t.equal(lines.at(-1), 'and 950 more')
	t.end()
})

void t.test('control characters in a name cannot add a line to the message', (t) => {
	t.same(problems('"a\\nb\\e[2J": 1'), ['1:1: a?b?[2J: is not a known setting'])
	t.end()
})

void t.test('no message repeats a value', (t) => {
	const files = [
		'providers: { a: { kind: openai, model: m, api_key: "s3cret word" } }',
		'providers: { a: { kind: openai, model: m, api_key: { secret: "s3cret word" } } }',
		'providers: { a: { kind: s3cret } }',
		'providers: { a: { kind: openai, model: m, base_url: "http://me:s3cret@host/v1" } }',
		'api_key: "s3cret"s3cret',
		'api_key: @s3cret',
		'api_key: [s3cret',
		'server: { host: "s3cret s3cret", port: s3cret }',
		'auth_mode: s3cret',
		'plugins: { a: s3cret }',
		'providers: { a: ${KEY} }',
		'providers: { a: "${KEY}" }',
		'server: "${KEY}"',
		'}s3cret',
	]
	for (const yaml of files) {
		t.notMatch(problems(yaml, { KEY: 's3cret' }).join('\n'), 's3cret', yaml)
	}
	t.end()
})

void t.test('any edit of the file is accepted, or refused with a line', (t) => {
	const settings = switchedOn(exampleFile(composition))
	const edit = fc.record({
		at: fc.nat(settings.length),
		cut: fc.nat(6),
		put: fc.constantFrom(
			'',
			' ',
			'\t',
			'\n',
			':',
			'- ',
			'{',
			'}',
			'[',
			'"',
			"'",
			'#',
			'&a ',
			'*a',
			'!x ',
			'|',
			'${',
			'~',
			'0',
			'é',
		),
	})
	fc.assert(
		fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), (edits) => {
			let yaml = settings
			for (const { at, cut, put } of edits) yaml = yaml.slice(0, at) + put + yaml.slice(at + cut)
			writeFileSync(file, yaml)
			try {
				readConfig({ home, env: { OPENAI_API_KEY: 'k' } })
			} catch (error) {
				return (
					isFault(error, 'config_invalid') &&
					error.message.split('\n').every((line) => line.startsWith(`${file}:`) || /^and \d+ more$/.test(line))
				)
			}
			return true
		}),
		{ numRuns: RUNS, ...(process.env.FUZZ_RUNS === undefined && { seed: 1 }) },
	)
	t.end()
})

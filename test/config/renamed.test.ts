/** Former names of settings and environment variables, and their migration. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { compose } from '../../config/composition.ts'
import type { Composition } from '../../config/composition.ts'
import { readConfig, warningsOf } from '../../config/read.ts'
import { migrateText, sectionPath } from '../../config/sections.ts'
import type { Config } from '../../config/types.ts'
import { composition } from '../../core/host/config.ts'
import { svcFor } from '../support/cli.ts'
import { makeHome } from '../support/gateway.ts'

/** Some settings and a variable get invented former names. */
const declared = [...composition.plugins.values()].map((one) =>
	one.name === 'runs'
		? { ...one, renamed: { 'runs.limits.model_calls': 'limits.steps', most_steps: 'limits.steps' } }
		: one,
)
const made = compose(declared)
const renaming: Composition = {
	...made,
	renamed: new Map([...made.renamed, ['server.tcp_port', 'server.port'], ['log_level', 'log.level']]),
	renamedVariables: new Map([['SVC_TCP_PORT', 'SVC_PORT']]),
}

function reader(folder: string): (yaml: string, env?: Record<string, string>) => Config {
	const file = join(folder, 'config/gateway.yaml')
	return (yaml, env = {}) => {
		writeFileSync(file, yaml)
		return readConfig(renaming, { home: folder, env })
	}
}

void t.test('a setting is accepted under its former name and place, with a warning', (t) => {
	const home = t.testdir({ config: {} })
	const read = reader(home)
	const file = join(home, 'config/gateway.yaml')
	const config = read(
		'server:\n  host: 127.0.0.2\n  tcp_port: 81\nplugins:\n  runs:\n    limits:\n      model_calls: 7\nlog_level: warn\n',
	)
	t.equal(config.server.port, 81)
	t.equal(config.server.host, '127.0.0.2')
	t.equal(config.log.level, 'warn')
	t.match(config, { runs: { limits: { steps: 7 } } })
	t.strictSame(warningsOf(config), [
		`${file}:3:3: server.tcp_port: the setting is server.port now; "svc config migrate" renames it`,
		`${file}:7:7: plugins.runs.limits.model_calls: the setting is plugins.runs.limits.steps now; "svc config migrate" renames it`,
		`${file}:8:1: log_level: the setting is log.level now; "svc config migrate" renames it`,
	])
	t.match(read('most_steps: 9\n'), { runs: { limits: { steps: 9 } } })
	t.strictSame(warningsOf(read('server: {port: 81}\n')), [])
	t.strictSame(sectionPath(renaming, ['plugins', 'runs', 'limits', 'model_calls']), ['runs', 'limits', 'steps'])
	t.end()
})

void t.test('an invalid value is reported at the former name, and using both names is refused', (t) => {
	const read = reader(t.testdir({ config: {} }))
	t.throws(() => read('server:\n  tcp_port: many\n'), { message: /:2:13: server\.tcp_port: must be/ })
	t.throws(() => read('server:\n  port: 1\n  tcp_port: 2\n'), {
		message:
			/:3:3: server\.tcp_port: is the former name of server\.port, which is also set in line 2; remove one of the two$/,
	})
	t.end()
})

void t.test('a variable is accepted under its former name, and the new name takes precedence', (t) => {
	const read = reader(t.testdir({ config: {} }))
	const former = read('log: {}\n', { SVC_TCP_PORT: '82' })
	t.equal(former.server.port, 82)
	t.strictSame(warningsOf(former), ['environment: SVC_TCP_PORT: the variable is now named SVC_PORT; set SVC_PORT'])
	const both = read('log: {}\n', { SVC_TCP_PORT: '82', SVC_PORT: '83' })
	t.equal(both.server.port, 83)
	t.strictSame(warningsOf(both), [
		'environment: SVC_TCP_PORT: is the former name of SVC_PORT, which is also set and takes precedence; remove SVC_TCP_PORT',
	])
	t.end()
})

void t.test('a migration renames settings, and keeps comments and order', (t) => {
	const inPlace = '# top\nserver: # ours\n    # of the port\n    tcp_port:   81   # here\n\n    host: x\n#log:\n'
	t.equal(migrateText(renaming, inPlace).text, inPlace.replace('tcp_port:', 'port:'))
	const moved =
		'# top\nserver:\n  host: x # ours\n\n# of the level\nlog_level: ${LEVEL} # here\nauth_mode: token\nlog:\n  format: json # last\n'
	t.equal(
		migrateText(renaming, moved).text,
		'# top\nserver:\n  host: x # ours\nauth_mode: token\nlog:\n  format: json # last\n  # of the level\n  level: ${LEVEL} # here\n',
	)
	t.strictSame(migrateText(renaming, moved).renames, [{ from: 'log_level', to: 'log.level' }])
	for (const text of [
		'server: {tcp_port: 81, host: x}\n',
		'log_level: warn\n',
		'log:\nlog_level: warn\n',
		'{log_level: warn}',
	]) {
		const { text: migrated } = migrateText(renaming, text)
		t.strictSame(migrateText(renaming, migrated), { text: migrated, renames: [] }, text)
		t.match(
			readConfig(renaming, { home: '/', env: {}, text: migrated }),
			text.includes('warn') ? { log: { level: 'warn' } } : { server: { port: 81 } },
		)
	}
	const both = 'server: {port: 1, tcp_port: 2}\n'
	t.strictSame(migrateText(renaming, both), { text: both, renames: [] })
	t.end()
})

void t.test('svc config migrate renames the plugins of version 0.1.0', async (t) => {
	const home = makeHome({ config: '# mine\nplugins:\n  # off for now\n  chat-a: false # telegram\n' }, t)
	const file = join(home, 'config/gateway.yaml')
	const svc = svcFor({ home })
	const env = { SVC_PORT: '0', SVC_LEGACY_PORT: '0' }
	const { stdout, code } = await svc(['config', 'migrate', '--json'], { env })
	t.equal(code, 0)
	t.match(JSON.parse(stdout), { changed: true, renamed: [{ from: 'plugins.chat-a', to: 'plugins.telegram' }] })
	t.equal(readFileSync(file, 'utf8'), '# mine\nplugins:\n  # off for now\n  telegram: false # telegram\n')
	const again = await svc(['config', 'migrate'], { env })
	t.match(again.stdout, /contains no former names/)
})

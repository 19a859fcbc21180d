/** Settings that plugins declare: former names, and settings files of third-party plugins. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { originOf, warningsOf } from '../../config/read.ts'
import { composition, readConfig } from '../../core/host/config.ts'
import { svcFor } from '../support/cli.ts'
import { makeHome, startGateway } from '../support/gateway.ts'

const names = (gateway: Awaited<ReturnType<typeof startGateway>>): string[] =>
	gateway.running.gateway.status.plugins().map(({ name }) => name)

void t.test(
	'a plugin name of version 0.1.0 is accepted, with a warning that states the line and the new name',
	async (t) => {
		const config = 'plugins:\n  chat-a: false\n  chat-b: true\n'
		const gateway = await startGateway({ config })
		t.teardown(() => gateway.stop())
		t.notOk(names(gateway).includes('telegram'))
		t.ok(names(gateway).includes('discord'))
		const file = join(gateway.home, 'config/gateway.yaml')
		const warnings = [
			`${file}:2:3: plugins.chat-a: the plugin is now named telegram; write plugins.telegram`,
			`${file}:3:3: plugins.chat-b: the plugin is now named discord; write plugins.discord`,
		]
		const read = readConfig({ home: gateway.home, env: {} })
		t.strictSame(warningsOf(read), warnings)
		t.strictSame(originOf(read, 'plugins.telegram'), { from: 'file', where: `${file}:2:11` })
		const { stdout, code } = await svcFor(gateway)(['config', 'validate'], {
			env: { SVC_PORT: '0', SVC_LEGACY_PORT: '0' },
		})
		t.equal(code, 0)
		for (const warning of warnings) t.ok(stdout.includes(warning), stdout)

		writeFileSync(file, 'plugins: {telegram: true, discord: {enabled: false}}\n')
		await gateway.running.gateway.reload()
		t.ok(names(gateway).includes('telegram'))
		t.notOk(names(gateway).includes('discord'))
		t.strictSame(warningsOf(readConfig({ home: gateway.home, env: {} })), [])
	},
)

void t.test('a third-party plugin gets its settings with the defaults of its settings file', async (t) => {
	const files = {
		'plugins/watch/index.ts': `export default {
			name: 'watch',
			http: (server, ctx) => server.route({ method: 'GET', path: '/v1/watch', options: { auth: false }, handler: () => ctx.config }),
		}`,
		'plugins/watch/settings.ts': `export default {
			description: 'A watch.',
			schema: (joi) => joi.object({ zone: joi.string().default('UTC'), hands: joi.number().default(3) }),
		}`,
	}
	const gateway = await startGateway({ config: 'plugins:\n  watch: {hands: 2}\n', files })
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request('GET', '/v1/watch')
	t.strictSame(body, { zone: 'UTC', hands: 2 })
})

void t.test('two schemas, and properties that only built-in plugins may declare, are refused', async (t) => {
	const schema = 'schema: (joi) => joi.object({})'
	const home = makeHome(
		{
			config: 'plugins: {both: true, required: true, own: true}\n',
			files: {
				'plugins/both/index.js': "export default { name: 'both', config: (joi) => joi.object({}) }",
				'plugins/both/settings.js': `export default { ${schema} }`,
				'plugins/required/index.js': "export default { name: 'required' }",
				'plugins/required/settings.js': `export default { ${schema}, required: true }`,
				'plugins/own/index.js': "export default { name: 'own', config: (joi) => joi.object({}) }",
				'plugins/own/settings.js': 'export default { color: 1 }',
			},
		},
		t,
	)
	const { stdout } = await svcFor({ home })(['config', 'validate'], { env: { SVC_PORT: '0', SVC_LEGACY_PORT: '0' } })
	t.match(stdout, /plugin "both": it has a schema in its settings file and in config\(joi\); keep one of the two/)
	t.match(
		stdout,
		/plugin "required": its settings file must not declare "required"; there are: description, schema, check/,
	)
	t.notMatch(stdout, /"own"/, 'a settings.js without declarations is an ordinary file of the plugin')
})

void t.test('each plugin with settings describes them', (t) => {
	for (const { name, schema, at, description } of composition.plugins.values()) {
		if (schema && !at) t.match(description, /^[A-Z].*\.$/, name)
	}
	t.end()
})

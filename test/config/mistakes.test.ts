/** Mistakes in gateway.yaml: the reported line and column, the advice, and that the gateway and `svc config validate` agree. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { boot } from '../../core/boot.ts'
import { exitCodes } from '../../core/cli/contract.ts'
import { svcFor } from '../support/cli.ts'
import { makeHome, startGateway } from '../support/gateway.ts'

const clock = `export default {
	name: 'clock',
	config: (joi) => joi.object({
		zone: joi.string().required(),
		face: joi.object({ size: joi.number().max(3) }),
		style: joi.string().valid('round', 'square'),
	}),
}`
const watchSettings = `export default {
	schema: (joi) => joi.object({ zone: joi.string().default('UTC'), hands: joi.number().max(3).default(3) }),
	check: ({ zone, hands }) => (zone === 'none' && hands > 0 ? [{ path: 'zone', message: 'hands need a zone' }] : []),
}`
const files = {
	'plugins/watch/index.js': "export default { name: 'watch' }",
	'plugins/watch/settings.js': watchSettings,
	'plugins/clock/index.js': clock,
	'plugins/plain/index.js': "export default { name: 'plain' }",
	'plugins/needy/index.js': "export default { name: 'needy', needs: ['clock'] }",
	'plugins/broken/index.js': 'export default {',
}

const free = 'server: {port: 0}\nlegacy: {port: 0}\n'
const busy = createServer()
busy.listen(0, '127.0.0.1')
await once(busy, 'listening')
t.teardown(() => busy.close())
const { port: busyPort } = busy.address() as AddressInfo

/** The text of gateway.yaml, line:column of the first mistake, and its message. */
const mistakes: [text: string, at: string, advice: RegExp][] = [
	// YAML
	['', '1:1', /^is empty; write at least a comment/],
	['server:\n\tport: 1\n', '2:1', /tabs cannot indent YAML; use spaces/],
	['server:\n  host: "localhost\n', '3:1', /a quote, a bracket or a space is missing/],
	['server:\n  port: 1\n  host: a\n  port: 2\n', '4:3', /server\.port: occurs here a second time; keep one/],
	['runs: &r\n  max_waiting: 1\n', '1:7', /anchors are not supported; remove "&r"/],
	['a: 1\n---\nb: 2\n', '2:1', /one document; remove/],
	['- server\n', '1:1', /must be a map of settings/],
	// Names
	['servr:\n  port: 1\n', '1:1', /servr: is not a known setting; did you mean "server"\?/],
	['server:\n  prt: 1\n', '2:3', /server\.prt: is not a known setting; did you mean "port"\?/],
	['port: 1\n', '1:1', /did you mean "server\.port"\?/],
	['runs:\n  steps: 5\n', '2:3', /did you mean "runs\.limits\.steps"\?/],
	['runs.limits.steps: 5\n', '1:1', /not a known setting; write "steps:" below "limits:" below "runs:"/],
	['runs:\n  limits.steps: 5\n', '2:3', /not a known setting; write "steps:" below "limits:"/],
	['runs:\n\u{a0}\u{a0}max_waiting: 5\n', '2:1', /begins with a special space character.*use ordinary spaces/],
	// Values
	['server:\n  port: "80"\n', '2:9', /server\.port: must be a whole number, without quotes/],
	['server:\n  port: 70000\n', '2:9', /server\.port: must be at most 65535/],
	['server:\n  host: http://localhost\n', '2:9', /without scheme, port or path/],
	['log:\n  format: prety\n', '2:11', /log\.format: must be one of .*did you mean "pretty"\?/],
	['auth_mode: tokens\n', '1:12', /did you mean "token"\?/],
	['runs:\n  limits:\n    steps: 0\n', '3:12', /runs\.limits\.steps: must be at least 1/],
	['mcp:\n  allowed_commands: npx\n', '2:21', /mcp\.allowed_commands: must be a list/],
	['webhooks:\n  public_url: gateway.example\n', '2:15', /an address such as https:/],
	['server:\n  host: ${SVC_NO_SUCH}\n', '2:9', /SVC_NO_SUCH is not set; set it, or write \$\{SVC_NO_SUCH:-default\}/],
	['backups:\n  schedule: every day\n', '2:13', /backups\.schedule: .*five cron fields.*"0 3 \* \* \*"/],
	['backups:\n  timezone: "+05:00"\n', '2:13', /backups\.timezone: .*name of a time zone/],
	['backups:\n  timezone: Europe/Rom\n', '2:13', /backups\.timezone: .*name of a time zone, such as Europe\/Rome/],
	// Values that do not go together
	['server: {port: 4000}\nlegacy:\n  port: 4000\n', '1:16', /server\.port and legacy\.port must differ/],
	['skills:\n  memory_mib: 250\n', '2:15', /must be at least 64 above skills\.memory_mib/],
	// Providers
	['providers:\n  a: {kind: opnai, model: m}\n', '2:13', /must be one of openai, .*, offline; did you mean "openai"\?/],
	['providers:\n  a: {kind: openai}\n', '2:3', /model: is missing; give the name of a model/],
	[
		'providers:\n  a: {kind: openai, model: m, base_url: "http://me:pw@x"}\n',
		'2:41',
		/must not contain a user or password; put the key into api_key/,
	],
	['providers:\n  a: {kind: offline}\n  b: {kind: offline}\n', '2:3', /default_provider: is missing; .*a, b/],
	[
		'providers:\n  a: {kind: offline}\ndefault_provider: a\nfallback: [aa]\n',
		'4:12',
		/fallback\.0: no such provider; there is a/,
	],
	// Settings of built-in plugins, in either place
	[
		'plugins:\n  runs:\n    limits:\n      steps: ten\n',
		'4:14',
		/plugins\.runs\.limits\.steps: must be a whole number/,
	],
	['plugins:\n  mcp: {servres: []}\n', '2:9', /plugins\.mcp\.servres: is not a known setting/],
	['plugins:\n  backups: {schedule: "61 * * * *"}\n', '2:23', /plugins\.backups\.schedule: .*five cron fields/],
	['plugins:\n  openai-api:\n    max_open: 0\n', '3:15', /plugins\.openai-api\.max_open: must be at least 1/],
	['mcp-server:\n  max_sesions: 5\n', '2:3', /did you mean "max_sessions"\?/],
	[
		'webhooks:\n  per_minute: 5\nplugins:\n  webhooks:\n    keep: 1\n',
		'4:3',
		/has settings here \(line 4\) and at the top of the file \(webhooks, line 1\); keep one/,
	],
	['plugins:\n  auth: {auth_mode: token}\n', '2:10', /at the top of the file there are auth_mode/],
	['plugins:\n  vault: {key: x}\n', '2:11', /plugins\.vault\.key: is not a known setting: vault has none/],
	['plugins:\n  auth: false\n', '2:9', /plugins\.auth: the gateway cannot run without auth; remove this line/],
	['plugins:\n  auth: {enabled: false}\n', '2:19', /plugins\.auth\.enabled: .*cannot run without auth/],
	[
		'plugins:\n  telegram: true\n  chat-a: false\n',
		'3:3',
		/plugins\.chat-a: is the former name of telegram, which is also set in line 2; remove one/,
	],
	['plugins:\n  runs: {path: ./runs}\n', '2:10', /for third-party plugins.*remove it/],
	['plugins:\n  vault: false\n', '2:10', /plugin "channels" needs plugin "vault".*set plugins\.vault to true/],
	// Settings of third-party plugins
	['plugins:\n  clock: {zone: UTC, stile: round}\n', '2:22', /plugins\.clock\.stile: .*did you mean "style"\?/],
	['plugins:\n  clock:\n    zone: UTC\n    face: {size: 4}\n', '4:18', /plugins\.clock\.face\.size: must be at most 3/],
	['plugins:\n  clock: true\n', '2:3', /plugins\.clock\.zone: is missing/],
	['clock:\n  zone: 5\nplugins:\n  clock: true\n', '2:9', /clock\.zone: must be text/],
	['clock: {zone: a}\nplugins:\n  clock: {zone: b}\n', '3:3', /settings here \(line 3\) and at the top .*line 1\)/],
	['plugins:\n  plain:\n    size: 1\n', '3:5', /takes no settings.*write plain: true/],
	['plugins:\n  needy: true\n  clock: false\n', '2:10', /needs plugin "clock".*set plugins\.clock to true/],
	['plugins:\n  watch: {zone: a, hands: 4}\n', '2:27', /plugins\.watch\.hands: must be at most 3/],
	['plugins:\n  watch: {zone: none, hands: 2}\n', '2:17', /plugins\.watch\.zone: hands need a zone/],
	['watch: {zon: a}\nplugins:\n  watch: true\n', '1:9', /watch\.zon: .*did you mean "zone"/],
	// Mistakes that depend on the machine or the home
	[
		`server: {port: ${busyPort}}\nlegacy: {port: 0}\n`,
		'1:16',
		/another program listens there; end it, or set server\.port/,
	],
	[`server: {port: 0}\nlegacy: {port: ${busyPort}}\n`, '2:16', /another program listens there.*legacy\.port/],
	['server: {port: 0, host: 203.0.113.7}\nlegacy: {port: 0}\n', '1:25', /this machine does not have that address/],
	[`${free}auth_mode: token\n`, '3:12', /no valid token could administer.*svc tokens create --scope "\*"/],
]

void t.test(
	'a reload refuses each with line, column and advice, and "svc config validate" prints the same',
	async (t) => {
		t.ok(mistakes.length >= 40)
		const home = makeHome({ config: free, files }, t)
		const running = await boot({ home, env: { SVC_LOG_LEVEL: 'silent' }, checkResponses: true })
		t.teardown(() => running.stop())
		const { gateway } = running
		const file = join(home, 'config/gateway.yaml')
		const svc = svcFor({ home })
		const url = gateway.status.url('main')
		for (const [text, at, advice] of mistakes) {
			writeFileSync(file, text)
			const refused = await gateway.reload().then(
				() => 'accepted',
				(error: Error) => error.message,
			)
			const [first = ''] = refused.split('\n')
			t.ok(first.startsWith(`${file}:${at}: `), `${at} ${JSON.stringify(text)}: ${first}`)
			t.match(first.slice(`${file}:${at}: `.length), advice)
			const validated = await svc(['config', 'validate'])
			t.equal(validated.code, exitCodes.config, text)
			t.equal(validated.stderr, `svc: ${refused}\n`, 'both print the same message')
			t.equal(readFileSync(file, 'utf8'), text)
		}
		writeFileSync(file, free)
		await gateway.reload()
		t.equal(gateway.status.configError(), null)
		t.equal(gateway.status.url('main'), url, 'none of them changed the address')
	},
)

void t.test(
	'a start refuses what a reload refuses, except mistakes in a third-party plugin, which fails alone',
	async (t) => {
		const refusedAtStart = [
			mistakes.find(([text]) => text === ''),
			mistakes.find(([text]) => text.includes('steps: ten')),
			mistakes.find(([text]) => text.includes('vault: false')),
			mistakes.find(([text]) => text.includes('every day')),
		]
		for (const [text, at] of refusedAtStart.filter((one) => one !== undefined)) {
			const home = makeHome({ config: text }, t)
			const file = join(home, 'config/gateway.yaml')
			const start = boot({ home, env: { SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'silent' } })
			const { stderr } = await svcFor({ home })(['config', 'validate'], {
				env: { SVC_PORT: '0', SVC_LEGACY_PORT: '0' },
			})
			const error = (await start.catch((thrown: unknown) => thrown)) as Error
			t.match(error, { code: 'config_invalid' })
			t.ok(error.message.startsWith(`${file}:${at}: `), error.message)
			t.equal(stderr, `svc: ${error.message}\n`)
		}
		const gateway = await startGateway({
			config: 'plugins:\n  clock: {zone: UTC, stile: round}\n  plain: true\n',
			files,
		})
		t.teardown(() => gateway.stop())
		t.match(
			gateway.running.gateway.status.plugins().filter(({ source }) => source !== 'built in'),
			[
				{
					name: 'clock',
					state: 'failed',
					last_error: /gateway\.yaml:2:22: plugins\.clock\.stile: .*did you mean "style"/,
				},
				{ name: 'plain', state: 'running' },
			],
		)
	},
)

void t.test('a valid setting that the gateway cannot use causes a warning at its line', async (t) => {
	const text = `providers:
  a: {kind: openai, model: m, api_key: {secret: NO_SUCH}}
plugins:
  broken: true
  missing: true
`
	const gateway = await startGateway({ config: text, files })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada', config: { fallback: ['gone'] } } })
	const svc = svcFor(gateway)
	const { code, stdout } = await svc(['config', 'validate'], { env: { SVC_PORT: '0', SVC_LEGACY_PORT: '0' } })
	t.equal(code, 0, stdout)
	t.match(
		stdout,
		/:2:49: providers\.a\.api_key\.secret: the vault has no secret of this name; store it \(svc vault set NO_SUCH\)/,
	)
	t.match(stdout, /:4:3: plugins\.broken: plugin "broken" does not load/)
	t.match(stdout, /:5:3: plugins\.missing: .*no index\.ts/)
	t.match(stdout, /:1:1: providers: agent ada names the provider gone, which does not exist/)
	await gateway.stop()
})

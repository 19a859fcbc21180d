/** The files of docs/deploy work, and the lists on the pages for operators are complete. */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { checksOf } from '../../core/cli/doctor/catalogue.ts'
import { compileCache } from '../../core/process/handover.mjs'
import { testFolder } from '../support/folder.ts'
import { send, startGateway } from '../support/gateway.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { WAIT_LIMIT_MS, eventually } from '../support/wait.ts'
import { root } from './pages.ts'

/** Metrics that only a gateway on a cluster has: test/cluster/forwarding.test.ts and lending.test.ts. */
const IN_CLUSTER = new Set(['svc_forwarded_requests_total', 'svc_lent_threads', 'svc_lent_thread_runs'])
const PROGRAM = '/opt/svc-gateway/'
const folder = fileURLToPath(root)
const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
const unit = read('docs/deploy/svc-gateway.service')

void t.test('the systemd unit starts a gateway with its variables and its credential, and ends it', async (t) => {
	const place = testFolder(t)
	const credentials = join(place, 'credentials')
	mkdirSync(credentials)
	const [name = ''] = valueOf('LoadCredential').split(':')
	writeFileSync(join(credentials, name), randomBytes(32).toString('base64'), { mode: 0o600 })
	const [file = '', ...args] = valueOf('ExecStart').split(' ')
	const node = file.replace(PROGRAM, '')
	t.equal(node, 'node_modules/.bin/node')
	// The shared compile cache saves most of the start.
	const folders = { '/var/lib/svc-gateway': join(place, 'state'), '/var/cache/svc-gateway': compileCache }
	const variables = valuesOf('Environment').map((text) => {
		const [variable = '', path = ''] = text.split('=')
		return [variable, folders[path as keyof typeof folders]]
	})
	t.strictSame(
		variables.map(([variable]) => variable),
		['SVC_HOME', 'NODE_COMPILE_CACHE'],
	)
	// The packages include Node for the platforms that have systemd.
	const child = spawn(existsSync(join(folder, node)) ? join(folder, node) : process.execPath, args, {
		cwd: folder,
		stdio: ['ignore', 'ignore', 'pipe'],
		env: {
			...Object.fromEntries(variables),
			CREDENTIALS_DIRECTORY: credentials,
			SVC_PORT: '0',
			SVC_LEGACY_PORT: '0',
			SVC_LOG_LEVEL: 'info',
		},
	})
	const exited = once(child, 'exit')
	t.teardown(() => void child.kill('SIGKILL'))
	let log = ''
	const logged = (wanted: RegExp): Promise<void> =>
		new Promise((resolve, reject) => {
			const late = setTimeout(() => reject(new Error(`${String(wanted)} was not logged:\n${log}`)), WAIT_LIMIT_MS)
			const look = (data: Buffer | string): void => {
				log += data.toString()
				if (!wanted.test(log)) return
				clearTimeout(late)
				child.stderr.off('data', look)
				resolve()
			}
			child.stderr.on('data', look)
			look('')
		})
	await logged(/no token was created yet/)
	const runtimeFile = join(folders['/var/lib/svc-gateway'], 'run/gateway.json')
	await eventually(() => existsSync(runtimeFile))
	const { url } = JSON.parse(readFileSync(runtimeFile, 'utf8')) as { url: string }
	const secret = await send(`${url}/v1/vault/secrets`, 'POST', { body: { name: 'KEY', value: 'a secret value' } })
	t.equal(secret.status, 201)
	t.notOk(existsSync(join(folders['/var/lib/svc-gateway'], 'keys/vault.key')), 'the key is the credential')

	t.equal(valueOf('ExecReload'), '/bin/kill -HUP $MAINPID')
	writeFileSync(join(folders['/var/lib/svc-gateway'], 'config/gateway.yaml'), 'runs: {max_waiting: 7}\n')
	child.kill('SIGHUP')
	child.kill('SIGTERM')
	t.strictSame(await exited, [0, null])
})

void t.test('systemd accepts the unit', { skip: !has('systemd-analyze') }, async (t) => {
	const file = join(testFolder(t), 'svc-gateway.service')
	// systemd checks that the program exists.
	const runnable = unit.replace('/opt/svc-gateway/node_modules/.bin/node', process.execPath)
	writeFileSync(file, runnable)
	const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
	t.equal(status, 0)
	t.notMatch(stderr, 'svc-gateway.service:')
	const rated = spawnSync('systemd-analyze', ['security', '--offline=true', file], { encoding: 'utf8' })
	const level = /Overall exposure level for \S+: ([\d.]+)/.exec(rated.stdout)?.[1]
	if (level === undefined) return t.comment('this systemd cannot rate a file')
	t.ok(Number(level) < 2.5, `rated ${level}`)
})

void t.test('the container image contains all files that the gateway needs', async (t) => {
	const lines = read('docs/deploy/Containerfile').replaceAll('\\\n', ' ').split('\n')
	const copied = lines.filter((line) => /^COPY (?!--from)/.test(line)).flatMap((line) => line.split(/\s+/).slice(1, -1))
	for (const file of copied) t.ok(existsSync(join(folder, file)), file)
	for (const [, file = ''] of lines.join('\n').matchAll(/\/opt\/svc-gateway\/([\w./-]+\.mjs)/g))
		t.ok(existsSync(join(folder, file)), `${file}, which the image uses, exists`)
	const needed = ['config', 'core', 'plugins', 'sandbox', 'package.json', 'package-lock.json', '.npmrc', 'LICENSE']
	t.strictSame(
		needed.filter((file) => !copied.includes(file)),
		[],
	)
	const command = JSON.parse(lines.find((line) => line.startsWith('CMD '))?.slice(4) ?? '') as string[]
	t.equal(command.join(' '), valueOf('ExecStart').replace(/^\S+\/node /, 'node '), 'it starts like the unit')

	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const [, check = ''] = lines.join('\n').match(/HEALTHCHECK .*?CMD (\[.*\])/) ?? []
	const [, ...args] = JSON.parse(check) as string[]
	const health = (at: string): Promise<unknown[]> =>
		once(
			spawn(
				process.execPath,
				args.map((text) => text.replace('http://127.0.0.1:3000', at)),
			),
			'exit',
		)
	t.strictSame(await health(gateway.url), [0, null])
	t.strictSame(await health('http://127.0.0.1:1'), [1, null])
	let state = 'migrating'
	const unready = createServer((_, response) => void response.writeHead(503).end(state))
	const { url, stop } = await listenOnLoopback(unready)
	t.teardown(stop)
	t.strictSame(await health(url), [0, null])
	state = 'draining'
	t.strictSame(await health(url), [1, null])
})

void t.test('the files, secrets and volumes of compose.yaml exist', async (t) => {
	const compose = parse(read('docs/deploy/compose.yaml')) as Compose
	const { build, secrets = [] } = compose.services.gateway ?? {}
	t.ok(existsSync(join(folder, 'docs/deploy', build?.context ?? '', build?.dockerfile ?? '')))
	t.strictSame(secrets, Object.keys(compose.secrets))
	t.strictSame(secrets, [valueOf('LoadCredential').split(':')[0]], 'the name that the gateway expects')
	for (const { volumes = [] } of Object.values(compose.services)) {
		for (const [from = ''] of volumes.map((text) => text.split(':'))) {
			if (from.startsWith('.')) t.ok(existsSync(normalize(join(folder, 'docs/deploy', from))), from)
			else t.ok(from in compose.volumes, from)
		}
	}
})

void t.test('the files, secrets, volumes and services of compose.cluster.yaml exist', async (t) => {
	const compose = parse(read('docs/deploy/compose.cluster.yaml'), { merge: true }) as Compose
	const { services } = compose
	t.strictSame(Object.keys(services), ['n1', 'n2', 'n3', 'g1', 'g2', 'g3', 'proxy'])
	const nats = read('docs/deploy/nats.conf')
	const known = documentedVariables()
	for (const [name, { build, secrets = [], volumes = [], environment = {}, depends_on = [] }] of Object.entries(
		services,
	)) {
		for (const other of depends_on) t.ok(other in services, `${name} depends on ${other}`)
		for (const [from = '', to = ''] of volumes.map((text) => text.split(':'))) {
			// The comment at the top explains how to create these.
			if (from.startsWith('./secrets/')) t.ok(to.startsWith('/etc/nats'), to)
			else if (from.startsWith('.')) t.ok(existsSync(normalize(join(folder, 'docs/deploy', from))), from)
			else t.ok(from in compose.volumes, from)
		}
		if (name.startsWith('n')) {
			t.equal(environment.NATS_NAME, name)
			for (const variable of Object.keys(environment)) t.match(nats, `$${variable}`)
			t.match(nats, `@${name}:6222`)
		}
		if (!name.startsWith('g')) continue
		t.ok(existsSync(join(folder, 'docs/deploy', build?.context ?? '', build?.dockerfile ?? '')))
		t.strictSame(secrets, Object.keys(compose.secrets))
		t.equal(environment.SVC_CLUSTER_ADVERTISE, name)
		t.match(environment.SVC_CLUSTER, /^tls:.*@n1:4222,tls:.*@n2:4222,tls:.*@n3:4222$/)
		for (const variable of Object.keys(environment).filter((one) => one.startsWith('SVC_')))
			t.ok(known.has(variable), `${variable} is documented`)
		t.match(read('docs/deploy/nginx-cluster.conf'), `server ${name}:3000 `)
	}
})

void t.test('systemd accepts the unit with the drop-in for a cluster', { skip: !has('systemd-analyze') }, (t) => {
	const place = testFolder(t)
	const plain = (text: string): string =>
		text
			.replace(/^(User|Group|LoadCredential|WorkingDirectory)=.*$/gm, '')
			.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`)
	const file = join(place, 'svc-gateway.service')
	writeFileSync(file, plain(unit))
	mkdirSync(`${file}.d`)
	const dropIn = read('docs/deploy/svc-gateway-cluster.conf')
	const verify = (text: string) => {
		writeFileSync(join(`${file}.d`, 'cluster.conf'), text)
		const env = { ...process.env, SYSTEMD_UNIT_PATH: `${place}:` }
		return spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8', env })
	}
	const { status, stderr } = verify(dropIn)
	t.equal(status, 0, stderr)
	t.notMatch(stderr, /svc-gateway/)
	t.match(verify(`${dropIn}Restarting=always\n`).stderr, /Restarting/, 'systemd reads the drop-in')
	for (const [, variable = ''] of dropIn.matchAll(/\b(SVC_[A-Z_]+)=/g))
		t.ok(documentedVariables().has(variable), `${variable} is documented`)
	t.end()
})

void t.test('Prometheus accepts its files', { skip: !has('promtool') }, async (t) => {
	const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', 'prometheus.yml'], {
		cwd: join(folder, 'docs/deploy'),
		encoding: 'utf8',
	})
	t.equal(status, 0, { stdout, stderr })
})

void t.test('metrics.md lists all metrics, and alerts use existing ones', async (t) => {
	// The metrics of tracing exist even though no collector listens at the endpoint.
	const gateway = await startGateway({ config: 'tracing: {endpoint: "http://127.0.0.1:1"}\n' })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/backups')
	const { body } = await gateway.request<string>('GET', '/metrics')
	const exported = new Set([...body.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name))
	if (process.platform !== 'linux') for (const name of ['process_open_fds', 'process_max_fds']) exported.add(name)
	const page = read('docs/metrics.md')
	const metric = /\b(?:svc|process|nodejs)_[a-z0-9_]+[a-z0-9]\b/g
	const named = new Set(page.match(metric))
	t.strictSame([...exported.difference(named)], [], 'the page lists all')
	const rules = read('docs/deploy/alerts.yml')
	const used = [...named, ...(rules.match(metric) ?? []), ...(read('docs/operating.md').match(metric) ?? [])]
	t.strictSame(
		used.map((name) => name.replace(/_bucket$/, '')).filter((name) => !exported.has(name) && !IN_CLUSTER.has(name)),
		[],
		'no unknown metric is used',
	)
	const { groups } = parse(rules) as { groups: { rules: { alert: string }[] }[] }
	const alerts = groups.flatMap((group) => group.rules.map(({ alert }) => alert))
	const explained = page
		.slice(page.indexOf('### Alerts'), page.indexOf('## Tracing'))
		.split('\n')
		.filter((line) => /^\| [A-Z][A-Za-z, ]* \| [^|]{20,}/.test(line))
		.flatMap((line) => (line.split('|')[1] ?? '').split(',').map((name) => name.trim()))
	t.strictSame(explained.toSorted(), alerts.toSorted())
})

void t.test('troubleshooting.md lists all checks of the doctor', async (t) => {
	const rows = [...read('docs/troubleshooting.md').matchAll(/^\| `([a-z.-]+)` \| [^|]{10,} \| [^|]{8,} \|$/gm)]
	t.strictSame(
		rows.map(([, id]) => id),
		(await checksOf({ home: t.testdir(), env: {} })).map(({ id }) => id),
	)
})

interface Compose {
	services: Record<
		string,
		{
			build?: { context: string; dockerfile: string }
			secrets?: string[]
			volumes?: string[]
			environment?: Record<string, string>
			depends_on?: string[]
		}
	>
	secrets: Record<string, { file: string }>
	volumes: Record<string, unknown>
}

function documentedVariables(): Set<string> {
	return new Set(read('docs/configuration.md').match(/\bSVC_[A-Z_]+\b/g))
}

/** The value of the key's first line in the unit. */
function valueOf(key: string): string {
	return valuesOf(key)[0] ?? ''
}

function valuesOf(key: string): string[] {
	return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

function has(program: string): boolean {
	return spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0
}

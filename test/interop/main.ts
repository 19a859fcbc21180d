/**
 * `npm run interop`: runs real clients, in the versions of test/interop/package-lock.json, against a gateway. Compares the tables of
 * working features with docs/clients.md; `--write` writes that page. Exit code 1 if a feature fails or the page differs. `--coding` also
 * tests coding agents, which take 760 MB.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openTarget } from './target.ts'
import { runExample } from './example.ts'
import { render, tryAll } from './table.ts'
import type { Cells, Client, Group } from './table.ts'

const folder = import.meta.dirname
const library = join(folder, '../../core/client')
const page = join(folder, '../../docs/clients.md')
const CODING = 'Coding agents'

const coding = process.argv.includes('--coding')
for (const packageFolder of [folder, library]) npm(packageFolder, 'ci', '--ignore-scripts', '--loglevel=error')
// Without a lock file, which would list the binaries of all platforms. Not every registry has them.
if (coding) npm(join(folder, 'coding'), 'install', '--no-package-lock', '--ignore-scripts', '--loglevel=error')
npm(library, 'run', '--silent', 'build')

const load = async (file: string): Promise<Client> => (await import(`./clients/${file}.mjs`)) as Client
const { senders } = (await import(String(new URL('clients/senders.mjs', import.meta.url)))) as { senders: Client[] }
const groups: Group[] = [
	{
		title: 'OpenAI-compatible API',
		columns: ['chat', 'stream', 'tools', 'JSON', 'responses', 'embeddings', 'models', 'errors'],
		clients: await Promise.all(['openai', 'langchain', 'ai-sdk', 'agents-sdk'].map(load)),
	},
	{
		title: 'Events',
		columns: ['follow', 'resume'],
		clients: await Promise.all(['own', 'eventsource', 'fetch-event-source'].map(load)),
	},
	{
		title: 'MCP',
		columns: ['tools', 'resources', 'questions'],
		clients: await Promise.all(['mcp-sdk', 'mcp-client'].map(load)),
	},
	{
		title: 'Webhooks',
		columns: ['accepted', 'changed', 'too old', 'repeated', '10 × 60 at once'],
		clients: senders,
	},
]
if (coding) {
	const { codex, opencode } = (await load('coding')) as unknown as Record<string, Client>
	groups.push({ title: CODING, columns: ['chat'], clients: [codex, opencode] as Client[] })
}

const { createGateway } = (await import(join(library, 'dist/index.js'))) as { createGateway: unknown }
const target = await openTarget(createGateway)
const tried: Cells[] = []
try {
	for (const { clients } of groups) tried.push(await tryAll(clients, target))
	await runExample(library, target)
} catch (error) {
	process.stderr.write(
		`the example of core/client: ${String(error)}\n${(error as { stdout?: string }).stdout ?? ''}${(error as { stderr?: string }).stderr ?? ''}\n`,
	)
	process.exitCode = 1
} finally {
	await target[Symbol.asyncDispose]()
}

const tables = groups.map((group, at) => render(group, tried[at] as Cells, versionOf)).join('')
process.stdout.write(tables)
for (const cells of tried)
	for (const [name, row] of cells)
		for (const [feature, outcome] of row)
			if (outcome instanceof Error) {
				process.stderr.write(`${name}, ${feature}: ${outcome.stack}\n`)
				process.exitCode = 1
			}
const text = readFileSync(page, 'utf8')
const untried = coding ? '' : text.slice(text.indexOf(`## ${CODING}`))
const current = `${(text.slice(0, text.indexOf('## ')) + tables + untried).trimEnd()}\n`
if (process.argv.includes('--write') && process.exitCode === undefined) writeFileSync(page, current)
else if (text !== current) {
	process.stderr.write('docs/clients.md differs; check the change, then run npm run interop -- --write\n')
	process.exitCode = 1
}

function npm(cwd: string, ...args: string[]): void {
	const file = process.env.npm_execpath
	const command = file === undefined ? 'npm' : (process.env.npm_node_execpath ?? process.execPath)
	execFileSync(command, [...(file === undefined ? [] : [file]), ...args], { cwd, stdio: ['ignore', 2, 2] })
}

function versionOf(name: string): string {
	if (name === 'svc-gateway-client') return JSON.parse(readFileSync(join(library, 'package.json'), 'utf8')).version
	const packages = [folder, join(folder, 'coding')].map((path) =>
		JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')),
	)
	return packages.map(({ dependencies }) => dependencies[name]).find((version) => version !== undefined)
}

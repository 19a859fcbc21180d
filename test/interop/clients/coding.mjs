/** Coding agents: programs that run in an empty home, and print the answer of the gateway's agent. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import assert from 'node:assert/strict'

const packages = new URL('../coding/node_modules/', import.meta.url).pathname
const platform = `${process.platform}-${process.arch}`

export const codex = {
	name: '@openai/codex',
	features: {
		chat: (at) =>
			inHome(at, join(packages, '.bin/codex'), ['exec', '--skip-git-repo-check', 'say hello'], (home) => {
				const server = `name = "svc"\nbase_url = "${at.url}/v1"\nenv_key = "SVC_TOKEN"\nwire_api = "responses"\n`
				const config = `model = "svc/${at.agent}"\nmodel_provider = "svc"\n\n[model_providers.svc]\n${server}`
				writeFileSync(join(home, 'config.toml'), config)
				return { CODEX_HOME: home }
			}),
	},
}

export const opencode = {
	name: 'opencode-ai',
	features: {
		chat: (at) =>
			inHome(at, join(packages, `opencode-${platform}/bin/opencode`), ['run', '-m', 'svc/ada', 'say hello'], () => {
				const options = { baseURL: `${at.url}/v1`, apiKey: at.token }
				const svc = { npm: '@ai-sdk/openai-compatible', options, models: { [at.agent]: {} } }
				return { OPENCODE_CONFIG_CONTENT: JSON.stringify({ provider: { svc } }) }
			}),
	},
}

async function inHome({ token }, file, args, prepare) {
	const home = mkdtempSync(join(tmpdir(), 'coding-'))
	try {
		const env = { PATH: process.env.PATH, HOME: home, SVC_TOKEN: token, ...prepare(home) }
		const running = promisify(execFile)(file, args, { cwd: home, env })
		running.child.stdin.end()
		assert.match((await running).stdout, /^Hello!/m)
	} finally {
		rmSync(home, { recursive: true, force: true })
	}
}

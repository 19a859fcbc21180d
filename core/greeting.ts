import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/types.ts'
import { quoted } from './quoted.ts'

export interface GreetingOptions {
	/** Where the gateway listens; null where it does not. */
	url: string | null
	legacy_url: string | null
	home: string
	config: Config
	env: Readonly<NodeJS.ProcessEnv>
	/** Where it was started. */
	cwd: string
}

/** What whoever started the gateway in a terminal reads: where everything is, and what to do next. */
export function greeting({ url, legacy_url, home, config, env, cwd }: GreetingOptions): string {
	// Elsewhere npx knows of no svc, and who came here by svc has it on the PATH.
	const isHere = cwd === root
	const svc = isHere ? 'npx svc' : 'svc'
	return `
The gateway listens at ${url}${legacy_url ? ` (older chat surface: ${legacy_url})` : ''}
Home: ${home} · settings: ${home}/config/gateway.yaml (applied as you save)
${modelLine(config, svc)}

Try in another terminal${isHere ? ', in this folder' : ''}:
${homeLine(home, env)}  ${svc} agents create ada
  ${svc} run ada "Hello"
Or by HTTP, as ${url}/docs says:
  curl -s ${url}/v1/agents/ada/runs -H 'content-type: application/json' -d '{"prompt": "Hello"}'

`
}

const root = resolve(fileURLToPath(new URL('..', import.meta.url)))

function modelLine({ providers, default_provider }: Config, svc: string): string {
	const provider = providers[default_provider]
	if (provider?.kind === 'openai') return `Models: ${default_provider} (${provider.model} at ${provider.base_url})`
	return `Models: the built-in offline provider, without network; "${svc} init" sets up a real one`
}

/** By its home the other terminal finds this gateway, whatever its port. */
function homeLine(home: string, env: GreetingOptions['env']): string {
	return env.SVC_HOME ? `  export SVC_HOME=${quoted(home)}\n` : ''
}

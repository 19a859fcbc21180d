import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { quoted } from '../util/quoted.ts'

export interface BannerOptions {
	/** Where the gateway listens; null if it does not. */
	url: string | null
	legacy_url: string | null
	home: string
	/** Further lines about this gateway. `svc` is the command as the reader can type it. */
	about: (svc: string) => readonly string[]
	env: Readonly<NodeJS.ProcessEnv>
	/** Where it was started. */
	cwd: string
}

/** What a terminal shows once the gateway listens: where everything is, and what to do next. */
export function startupBanner({ url, legacy_url, home, about, env, cwd }: BannerOptions): string {
	// npx finds svc in this folder only; started elsewhere, svc is on the PATH.
	const isHere = cwd === root
	const svc = isHere ? 'npx svc' : 'svc'
	return `
The gateway listens at ${url}${legacy_url ? ` (older chat surface: ${legacy_url})` : ''}
Home: ${home} · settings: ${home}/config/gateway.yaml (applied as you save)
${about(svc)
	.map((line) => `${line}\n`)
	.join('')}
Try in another terminal${isHere ? ', in this folder' : ''}:
${homeLine(home, env)}  ${svc} agents create ada
  ${svc} run ada "Hello"
Or by HTTP, as ${url}/docs says:
  curl -s ${url}/v1/agents/ada/runs -H 'content-type: application/json' -d '{"prompt": "Hello"}'

`
}

const root = resolve(fileURLToPath(new URL('../..', import.meta.url)))

/** With SVC_HOME the other terminal finds this gateway, whatever its port. */
function homeLine(home: string, env: BannerOptions['env']): string {
	return env.SVC_HOME ? `  export SVC_HOME=${quoted(home)}\n` : ''
}

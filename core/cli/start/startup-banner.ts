import { existsSync, realpathSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { settingsOf } from '../../../config/composition.ts'
import type { Config } from '../../../config/types.ts'
import { composition } from '../../host/config.ts'
import { isOn } from '../../host/desired-state.ts'
import { quoted } from '../../util/quoted.ts'
import { root } from '../../process/handover.mjs'

interface BannerOptions {
	/** Where the gateway listens; null if it does not. */
	url: string | null
	legacy_url: string | null
	home: string
	config: Config
	/** An agent to try; undefined if no agent exists. */
	agent: string | undefined
}

/** The text that the gateway prints once it listens: its addresses and files, and what to do next. */
export function startupBanner({ url, legacy_url, home, config, agent }: BannerOptions): string {
	// npx finds svc only in the repository's folder. A gateway that was started elsewhere has svc on the PATH.
	const needsNpx = process.cwd() === resolve(root) && !isOnPath()
	const svc = needsNpx ? 'npx svc' : 'svc'
	return `
The gateway listens at ${url}${legacy_url ? ` (chat API: ${legacy_url})` : ''}
Home: ${home} · settings: ${home}/config/gateway.yaml (applied as you save)
${linesOf(config, svc)
	.map((line) => `${line}\n`)
	.join('')}
Try in another terminal${needsNpx ? ', in this folder' : ''}:
${homeLine(home)}${agent === undefined ? `  ${svc} agents create ada\n` : ''}  ${svc} run ${agent ?? 'ada'} "Hello"
Or in a browser: ${url}/
Or over HTTP (see ${url}/docs):
  curl -s ${url}/v1/agents/${agent ?? 'ada'}/runs -H 'content-type: application/json' -d '{"prompt": "Hello"}'

`
}

/** Whether the command `svc` is this program, as in the container image and after `npm link`. */
function isOnPath(): boolean {
	const own = realpathSync(join(root, 'core/svc.mjs'))
	const found = (process.env.PATH ?? '')
		.split(delimiter)
		// npx and npm add such folders, for this process only.
		.find((folder) => !folder.endsWith(join('node_modules', '.bin')) && existsSync(join(folder, 'svc')))
	return found !== undefined && realpathSync(join(found, 'svc')) === own
}

/** With SVC_HOME the other terminal finds this gateway, whatever its port. */
function homeLine(home: string): string {
	return process.env.SVC_HOME ? `  export SVC_HOME=${quoted(home)}\n` : ''
}

/** Lines of running plugins. `svc` is the command as the reader can type it. */
function linesOf(config: Config, svc: string): string[] {
	return [...composition.plugins.values()]
		.filter(({ name }) => isOn(config, name))
		.flatMap((declared) => declared.banner?.(settingsOf(config, declared), svc) ?? [])
}

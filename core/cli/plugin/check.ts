/** `svc plugins check`: finds the problems of a plugin by running it in a child process. */
import { join } from 'node:path'
import { programOf } from '../../util/own-code.ts'
import { startChild } from '../child.ts'
import type { Cli, Style } from '../contract.ts'
import { pluginsIn } from '../third-party.ts'

export interface PluginFinding {
	/** `error`: the gateway would leave the plugin out. `warning`: it would run with the problem. */
	level: 'error' | 'warning'
	problem: string
	/** What to change. */
	fix: string
}

export interface CheckReport {
	folder: string
	/** Null if its code does not load. */
	name: string | null
	version: string | null
	/** True without errors, even if there are warnings. */
	valid: boolean
	findings: PluginFinding[]
}

export interface CheckOrder {
	folder: string
	/** The section `plugins` of gateway.yaml, with the settings of the plugin and of others that it needs. */
	plugins: Record<string, unknown>
	/** Replaces the plugin's settings in the file. */
	settings?: Record<string, unknown>
	/** The folder that contains other plugins by name. */
	pluginsFolder: string
}

/** What the child process finds. */
export type Inspection = Omit<CheckReport, 'folder' | 'valid'>

/** Sent by the child: what it does next, then the result. */
export type CheckMessage = { doing: string } | { report: Inspection }

const LIMIT_MS = 60_000
const child = programOf(new URL('./check-child.ts', import.meta.url))

/**
 * Loads the plugin, starts it in a gateway with a temporary home, and checks what it adds. `settings` replaces those of
 * gateway.yaml. Takes 60 s at most.
 */
export async function checkPlugin(
	{ home, env, signal }: Pick<Cli, 'home' | 'env' | 'signal'>,
	folder: string,
	settings?: Record<string, unknown>,
): Promise<CheckReport> {
	const order: CheckOrder = {
		folder,
		plugins: await pluginsIn(home),
		...(settings && { settings }),
		pluginsFolder: join(home, 'plugins'),
	}
	const limit = AbortSignal.timeout(LIMIT_MS)
	let doing = 'loading its code'
	let report: Inspection | undefined
	const own = Object.entries(env).filter(([name]) => !/^(SVC_|NODE_OPTIONS$)/.test(name))
	const options = { env: Object.fromEntries(own), signal: AbortSignal.any([limit, signal]) }
	const { process, ended } = startChild<CheckMessage>(child, [], options, (message) => {
		if ('doing' in message) doing = message.doing
		else report = message.report
	})
	process.send(order)
	const how = await ended
	signal.throwIfAborted()
	const { name = null, version = null, findings = [] } = report ?? {}
	if (!report) {
		const [problem, fix] = limit.aborted
			? [
					`${doing} does not end within ${LIMIT_MS / 1000} s`,
					'find what it waits for: a promise that never settles, or an endless loop',
				]
			: [
					`${doing} ends the process (${how})`,
					'remove the call of process.exit, or what crashes Node: in the gateway it would end everything',
				]
		findings.push({ level: 'error', problem, fix })
	}
	return { folder, name, version, valid: findings.every(({ level }) => level !== 'error'), findings }
}

/** The report as text. */
export function reportText({ name, version, folder, valid, findings }: CheckReport, style: Style): string {
	const title = `${style.bold(style.plain(name ?? folder))}${version === null ? '' : ` ${style.plain(version)}`}`
	const lines = findings.flatMap(({ level, problem, fix }) => [
		`${level === 'error' ? style.bad('error') : style.warn('warning')}  ${style.plain(problem)}`,
		`  ${style.dim(style.plain(fix))}`,
	])
	return [`${title}: ${valid ? style.good('it runs') : style.bad('it would not start')}`, ...lines].join('\n')
}

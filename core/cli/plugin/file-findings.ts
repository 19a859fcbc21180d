/** Problems of the commands that a plugin adds to `svc`, and of its checks for `svc doctor`. */
import { Command } from 'commander'
import { messageOf } from '../../errors.ts'
import { addCommand } from '../build-command.ts'
import { builtInFiles, CommandTable } from '../command-table.ts'
import type { Cli } from '../contract.ts'
import { thirdPartyChecks } from '../doctor/third-party.ts'
import { thirdPartyFiles } from '../third-party.ts'
import type { PluginFinding } from './check.ts'

/** Half the time limit of the whole check. */
const LIMIT_MS = 30_000

/** `home`: its gateway.yaml switches the plugin on. */
export async function commandFindings(plugin: string, home: string): Promise<PluginFinding[]> {
	const table = new CommandTable()
	for (const file of await builtInFiles()) table.add({ file })
	// Before a command runs, nothing else of its `Cli` is used.
	const surroundings = { home, env: process.env } as Cli
	for await (const found of thirdPartyFiles(surroundings, plugin)) table.add(found)
	for (const { name, plugin: owner, command } of table.entries()) {
		if (owner !== plugin) continue
		try {
			const { default: loaded } = 'load' in command ? await command.load() : { default: command }
			if (typeof loaded?.run !== 'function' && typeof loaded?.commands !== 'object')
				table.report(plugin, `its command "${name}" has neither \`run\` nor subcommands`)
			else addCommand(new Command(), name, loaded, surroundings)
		} catch (error) {
			table.report(plugin, `its command "${name}" cannot be used: ${messageOf(error)}`)
		}
	}
	const own = `plugin "${plugin}": `
	return table.problems
		.filter((problem) => problem.startsWith(own))
		.map((problem) => ({ level: 'warning', problem: problem.slice(own.length), fix: 'change it in cli.ts' }))
}

/** As `commandFindings`; the checks themselves are not run. */
export async function doctorFindings(home: string): Promise<PluginFinding[]> {
	const checks = await thirdPartyChecks({ home, env: process.env, limits: { thirdParty: LIMIT_MS } })
	const loading = checks.find(({ id }) => id === 'plugin.checks')
	const found = [(await loading?.run(undefined as never)) ?? []].flat()
	return found.flatMap(({ level, message }) =>
		level === 'ok' ? [] : { level: 'warning', problem: message, fix: 'change it in doctor.ts' },
	)
}

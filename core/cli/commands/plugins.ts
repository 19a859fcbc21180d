import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import type { Command } from '../command.ts'
import { yesOption } from '../consent.ts'
import { CliError } from '../contract.ts'
import type { Cli } from '../contract.ts'
import type { NewOptions } from '../plugin/new.ts'
import { showState } from '../plugin/state.ts'
import { isObject } from '../../util/is-object.ts'

export default {
	description: 'Show the plugins and their problems; create, check, install and remove plugins',
	arguments: '[name]',
	examples: `
Examples:
  svc plugins
  svc plugins memory
  svc plugins --json
  svc plugins new notes
  svc plugins new my-chat --channel --into ~/src
  svc plugins test notes
  svc plugins check ~/src/my-chat
  svc plugins install svc-plugin-notes@1.2.0
  svc plugins install ./svc-plugin-notes-1.2.0.tgz --settings '{max_length: 500}'
  svc plugins remove notes`,
	run: (cli, { name }: { name?: string }) => showState(cli, name),
	commands: {
		new: {
			description: 'Create a folder with a working plugin, its test, and the types for an editor',
			arguments: '<name>',
			options: {
				'--channel': 'create a channel, which connects agents to a chat platform',
				'--into <folder>': 'create the plugin in this folder. Default: plugins/ of the home folder',
			},
			async run(cli, { name, ...options }: { name: string } & NewOptions) {
				const { newPlugin } = await import('../plugin/new.ts')
				const { folder, files } = newPlugin(cli, name, options)
				cli.out.answer({ name, folder, files }, (_, style) =>
					[`${style.good('Created')} ${folder}`, ...files.map((file) => `  ${file}`)].join('\n'),
				)
				const isInHome = folder === join(cli.home, 'plugins', name)
				const value = isInHome ? 'true' : `'{path: ${folder}}'`
				cli.out.note(`Test it:      svc plugins test ${isInHome ? name : folder}`)
				cli.out.note(`Switch it on: svc config set plugins.${name} ${value}`)
				if (options.channel === true)
					cli.out.note(`Connect it:   svc channels add ${name.replaceAll('-', '_')}, with --set for its settings`)
			},
		},
		check: {
			description: 'Find problems of a plugin before it is switched on: runs it in a gateway with a temporary home',
			arguments: '[plugin]',
			options: { '--settings <yaml>': 'settings to check it with, in place of those of gateway.yaml' },
			async run(cli, { plugin, settings }: { plugin?: string; settings?: string }) {
				const { checkPlugin, reportText } = await import('../plugin/check.ts')
				const folder = folderOf(cli, plugin)
				const report = await checkPlugin(cli, folder, settings === undefined ? undefined : settingsIn(settings))
				cli.out.answer(report, reportText)
				if (!report.valid) throw cli.error('failed', `the gateway would leave out the plugin in ${folder}`)
			},
		},
		install: {
			description:
				'Install a plugin from an npm package, an archive or a folder: asks, checks it, and switches it on. Repeat it for another version',
			arguments: '<package>',
			options: { '--settings <yaml>': 'its settings in gateway.yaml', ...yesOption },
			async run(
				cli,
				{ package: source, settings, yes = false }: { package: string; settings?: string; yes?: boolean },
			) {
				const { installPlugin } = await import('../plugin/install.ts')
				await installPlugin(cli, source, { yes, ...(settings !== undefined && { settings: settingsIn(settings) }) })
			},
		},
		remove: {
			description: 'Remove a plugin from gateway.yaml, and its folder if it was installed; what it stored stays',
			arguments: '<name>',
			options: yesOption,
			async run(cli, { name, yes = false }: { name: string; yes?: boolean }) {
				const { removePlugin } = await import('../plugin/install.ts')
				await removePlugin(cli, name, { yes })
			},
		},
		test: {
			description:
				"Run the tests of a plugin with the gateway's own Node: a folder (default: this one), or a name in plugins/",
			arguments: '[plugin]',
			async run(cli, { plugin }: { plugin?: string }) {
				const { runTests } = await import('../plugin/run-tests.ts')
				await runTests(cli, folderOf(cli, plugin))
			},
		},
	},
} satisfies Command

function settingsIn(text: string): Record<string, unknown> {
	try {
		const value = parse(text, { schema: 'core' }) as unknown
		if (isObject(value)) return value
	} catch {
		// not valid YAML
	}
	throw new CliError('usage', "--settings must be a map in YAML, such as '{max_length: 500}'")
}

/**
 * The folder of a plugin that the user specifies by its path, or by its name in `plugins/` of the home. Default: the working
 * directory. Throws a `CliError` (not_found) if there is no such folder.
 */
function folderOf({ home, cwd }: Pick<Cli, 'home' | 'cwd'>, plugin = '.'): string {
	const isName = /^[A-Za-z0-9][\w-]*$/.test(plugin)
	const places = [...(isName ? [join(home, 'plugins', plugin)] : []), resolve(cwd, plugin)]
	const found = places.find((place) => statSync(place, { throwIfNoEntry: false })?.isDirectory())
	if (found === undefined) throw new CliError('not_found', `there is no folder ${places.join(', and no folder ')}`)
	return found
}

/** Commands of third-party plugins. A broken one must not break `svc`. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { configFile } from '../../config/home.ts'
import { readText } from '../../config/read-text.ts'
import { pluginInvalid } from '../errors.ts'
import { codeFile } from '../host/entry.ts'
import { within } from '../util/deadline.ts'
import { isBuiltIn } from '../util/own-files.ts'
import type { CommandFile } from './command.ts'
import type { CommandSource } from './command-table.ts'
import type { Cli } from './contract.ts'

/** The import of a file is abandoned after this time: its top level may wait forever. */
const IMPORT_MS = 2_000

/**
 * The command files of the third-party plugins that the home's gateway.yaml switches on. Each is imported when the
 * caller asks for the next one; a plugin with the name of the wanted command comes first.
 */
export async function* thirdPartyFiles(cli: Cli, wanted: string | undefined): AsyncGenerator<CommandSource> {
	const plugins = await pluginFiles(cli.home, 'cli')
	if (plugins.length === 0) return
	const { refusedPlace } = await import('../process/shared-home.ts')
	for (const { name, file, folder } of plugins.toSorted(
		(a, b) => Number(b.name === wanted) - Number(a.name === wanted),
	)) {
		try {
			const shared = refusedPlace(folder, cli)
			yield shared
				? { plugin: name, problem: `its commands are not loaded: ${shared.problem}; run: ${shared.fix}` }
				: { plugin: name, file: await imported(file) }
		} catch (error) {
			yield { plugin: name, problem: error }
		}
	}
}

async function imported(path: string): Promise<CommandFile> {
	const module = import(pathToFileURL(path).href) as Promise<{ default?: CommandFile }>
	const { default: file } = await within(IMPORT_MS, path, module)
	if (typeof file?.commands === 'object' && file.commands !== null) return file
	throw pluginInvalid(`${path} must default-export an object with commands (see core/cli/command.ts)`)
}

/** A file of a third-party plugin that gateway.yaml switches on. */
export interface PluginFile {
	name: string
	folder: string
	file: string
}

/**
 * The file of this name (`cli.ts`, or with the ending js or mjs) of each third-party plugin that has one, in the order of
 * gateway.yaml.
 */
export async function pluginFiles(home: string, part: 'cli' | 'doctor'): Promise<PluginFile[]> {
	return Object.entries(await pluginsIn(home)).flatMap(([name, entry]) => {
		const { enabled = entry !== false, path } = (entry ?? {}) as { enabled?: unknown; path?: unknown }
		if (enabled === false || name.includes('/') || isBuiltIn(name)) return []
		const folder = resolve(home, 'plugins', typeof path === 'string' ? path : name)
		const file = codeFile(folder, part)
		return file === undefined ? [] : [{ name, folder, file }]
	})
}

/** The section `plugins` of gateway.yaml, unchecked; empty if it cannot be read, which `svc config validate` reports. */
export async function pluginsIn(home: string): Promise<Record<string, unknown>> {
	try {
		const text = readText(configFile(home))
		// Most homes have no such section, and the parser is not loaded.
		if (!/^[^#\n]*\bplugins\b/m.test(text)) return {}
		const { parse } = await import('yaml')
		const { plugins } = (parse(text) ?? {}) as { plugins?: unknown }
		return typeof plugins === 'object' && plugins !== null ? (plugins as Record<string, unknown>) : {}
	} catch {
		return {}
	}
}

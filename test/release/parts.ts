/** The software bill of materials of the package (CycloneDX), without development dependencies. */
import { createHash } from 'node:crypto'
import { git, output } from './run.ts'

export async function billOfMaterials(
	clone: string,
	packageDigest: string,
): Promise<{ name: string; text: string; sha256: string }> {
	const command = ['npm', 'sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--omit', 'dev']
	const bill = JSON.parse(await output(clone, [...command, '--package-lock-only'])) as {
		serialNumber: string
		metadata: { timestamp: string; component: { name: string } }
	}
	// A serial number that is the same in each build of a commit.
	const id = packageDigest.slice(0, 32).replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-8$3-8$4-$5')
	bill.serialNumber = `urn:uuid:${id}`
	// npm uses the name of the folder.
	bill.metadata.component.name = 'svc-gateway'
	bill.metadata.timestamp = new Date(git(clone, 'show', '--no-patch', '--format=%cI')).toISOString()
	const text = `${JSON.stringify(bill, null, 2)}\n`
	return { name: 'svc-gateway.cdx.json', text, sha256: createHash('sha256').update(text).digest('hex') }
}

/** The software bill of materials of the package (CycloneDX), without what only development needs. */
import { createHash } from 'node:crypto'
import { git, output } from './run.ts'

export async function billOfMaterials(
	clone: string,
	packageDigest: string,
): Promise<{ name: string; text: string; sha256: string }> {
	const asked = ['npm', 'sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--omit', 'dev']
	const parts = JSON.parse(await output(clone, [...asked, '--package-lock-only'])) as {
		serialNumber: string
		metadata: { timestamp: string; component: { name: string } }
	}
	// The same for each build of one commit.
	const id = packageDigest.slice(0, 32).replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-8$3-8$4-$5')
	parts.serialNumber = `urn:uuid:${id}`
	// npm takes the name of the folder.
	parts.metadata.component.name = 'svc-gateway'
	parts.metadata.timestamp = new Date(git(clone, 'show', '--no-patch', '--format=%cI')).toISOString()
	const text = `${JSON.stringify(parts, null, 2)}\n`
	return { name: 'svc-gateway.cdx.json', text, sha256: createHash('sha256').update(text).digest('hex') }
}

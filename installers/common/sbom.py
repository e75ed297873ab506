"""The bill of materials of a frozen folder, as CycloneDX JSON."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from parts import Part

_TYPES = {
    "application": ComponentType.APPLICATION,
    "model": ComponentType.MACHINE_LEARNING_MODEL,
}


def bill_of_materials(parts: Sequence[Part], folder: Path) -> str:
    """The bill of `parts`, valid against CycloneDX 1.6; the same parts give the same bytes.

    The application's hash is that of the list of all files in `folder` with their own hashes.
    """
    bom = Bom(version=1)
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    components = {part.name: _component(part) for part in parts}
    root = components[parts[0].name]
    root.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=_folder_hash(folder)))
    bom.metadata.component = root
    for part in parts[1:]:
        bom.components.add(components[part.name])
    for part in parts[1:]:
        bom.register_dependency(components[part.name], [components[name] for name in part.needs if name in components])
    direct = [components[name] for name in parts[0].needs if name in components]
    direct += [components[part.name] for part in parts[1:] if part.kind in ("library", "model", "system")]
    bom.register_dependency(root, direct)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(sorted(part.purl for part in parts)))
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem is not None:
        raise SystemExit(f"the bill of materials is not valid CycloneDX: {problem}")
    return text + "\n"


def _component(part: Part) -> Component:
    made = LicenseFactory().make_from_string(part.licence) if part.licence and "below" not in part.licence else None
    if isinstance(made, LicenseExpression) and "Bootloader" in part.licence:
        made = DisjunctiveLicense(name=part.licence)
    component = Component(
        name=part.name,
        version=part.version,
        type=_TYPES.get(part.kind, ComponentType.LIBRARY),
        bom_ref=part.purl,
        purl=PackageURL.from_string(part.purl),
        licenses=[made] if made else [],
    )
    if part.home.startswith("http"):
        component.external_references.add(ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(part.home)))
    if part.sha256:
        component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=part.sha256))
    return component


def _folder_hash(folder: Path) -> str:
    total = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        total.update(f"{digest}  {file.relative_to(folder).as_posix()}\n".encode())
    return total.hexdigest()

#include "apps/reporting/glyphs.h"

#ifdef TESSERA_FONTS

#include <fontconfig/fontconfig.h>
#include <ft2build.h>
#include FT_FREETYPE_H
#ifdef TESSERA_SHAPING
#include <raqm.h>
#endif

#include <algorithm>
#include <memory>
#include <vector>

namespace tessera {

namespace {

template <auto destroy> struct Destroyer {
  template <typename T> void operator()(T* object) const { destroy(object); }
};

// The system's sans-serif fonts, the preferred one first. For one thread.
class Fonts {
 public:
  Fonts() : config_(FcInitLoadConfigAndFonts()) {
    if (!config_ || FT_Init_FreeType(&library_) != 0) return;
    const std::unique_ptr<FcPattern, Destroyer<FcPatternDestroy>> wanted(
        FcNameParse(reinterpret_cast<const FcChar8*>("sans-serif:outline=true:color=false")));
    FcConfigSubstitute(config_.get(), wanted.get(), FcMatchPattern);
    FcDefaultSubstitute(wanted.get());
    FcResult result;
    set_.reset(FcFontSort(config_.get(), wanted.get(), FcFalse, nullptr, &result));
    if (set_) faces_.resize(static_cast<size_t>(set_->nfont));
  }

  // The first font's face that has the character, with letters of so many pixels; null where none has it.
  FT_Face face_with(char32_t character, int pixels) {
    for (size_t i = 0; i < faces_.size(); ++i) {
      FcCharSet* has = nullptr;
      if (FcPatternGetCharSet(set_->fonts[i], FC_CHARSET, 0, &has) != FcResultMatch ||
          FcCharSetHasChar(has, character) == FcFalse)
        continue;
      auto* const face = face_of(i);
      if (face != nullptr && FT_Set_Pixel_Sizes(face, 0, static_cast<FT_UInt>(pixels)) == 0) return face;
    }
    return nullptr;
  }

 private:
  // Opens the file at its first use. One that cannot be opened is left out from then on.
  FT_Face face_of(size_t i) {
    Opened& opened = faces_[i];
    if (opened.tried) return opened.face;
    opened.tried = true;
    FcChar8* file = nullptr;
    int number = 0;
    FcPatternGetInteger(set_->fonts[i], FC_INDEX, 0, &number);
    if (FcPatternGetString(set_->fonts[i], FC_FILE, 0, &file) != FcResultMatch ||
        FT_New_Face(library_, reinterpret_cast<const char*>(file), number, &opened.face) != 0)
      opened.face = nullptr;
    return opened.face;
  }

  struct Opened {
    bool tried = false;
    FT_Face face = nullptr;
  };

  std::unique_ptr<FcConfig, Destroyer<FcConfigDestroy>> config_;
  std::unique_ptr<FcFontSet, Destroyer<FcFontSetDestroy>> set_;
  FT_Library library_ = nullptr;  // lives as long as the program, with its faces
  std::vector<Opened> faces_;     // of set_
};

// Puts the glyph's bitmap where the pen stands; glyphs may overlap, and what leaves the line is cut off.
void draw(const FT_GlyphSlotRec& glyph, int pen, int baseline, LetteredLine& line) {
  const FT_Bitmap& bitmap = glyph.bitmap;
  if (bitmap.pixel_mode != FT_PIXEL_MODE_GRAY) return;
  for (int row = 0; row < static_cast<int>(bitmap.rows); ++row)
    for (int column = 0; column < static_cast<int>(bitmap.width); ++column) {
      const int y = baseline - glyph.bitmap_top + row, x = pen + glyph.bitmap_left + column;
      if (y < 0 || y >= line.height || x < 0 || x >= line.width) continue;
      uint8_t& covered =
          line.coverage[static_cast<size_t>(y) * static_cast<size_t>(line.width) + static_cast<size_t>(x)];
      covered = std::max(covered, bitmap.buffer[row * bitmap.pitch + column]);
    }
}

// A glyph of a face, and where it stands: its offset from the pen and how far the pen moves on, in pixels.
struct Glyph {
  FT_Face face;
  FT_UInt index;
  int right = 0, up = 0, advance = 0;
};

constexpr FT_Int32 hinting = FT_LOAD_TARGET_LIGHT;

#ifdef TESSERA_SHAPING

int in_pixels(int part) { return (part + 32) >> 6; }

// Letters joined and set as their script has it, from right to left where it reads so.
std::vector<Glyph> laid_out(const std::u32string& characters, const std::vector<FT_Face>& faces) {
  const std::vector<uint32_t> text(characters.begin(), characters.end());
  const std::unique_ptr<raqm_t, Destroyer<raqm_destroy>> line(raqm_create());
  if (!line || !raqm_set_text(line.get(), text.data(), text.size()) ||
      !raqm_set_par_direction(line.get(), RAQM_DIRECTION_DEFAULT) ||
      !raqm_set_freetype_load_flags(line.get(), hinting))
    return {};
  for (size_t begin = 0, end = 0; begin < faces.size(); begin = end) {
    while (end < faces.size() && faces[end] == faces[begin]) ++end;
    if (!raqm_set_freetype_face_range(line.get(), faces[begin], begin, end - begin)) return {};
  }
  size_t count = 0;
  const raqm_glyph_t* const found = raqm_layout(line.get()) ? raqm_get_glyphs(line.get(), &count) : nullptr;
  std::vector<Glyph> glyphs;
  for (size_t i = 0; found != nullptr && i < count; ++i)
    glyphs.push_back({found[i].ftface, found[i].index, in_pixels(found[i].x_offset),
                      in_pixels(found[i].y_offset), in_pixels(found[i].x_advance)});
  return glyphs;
}

#else

// One glyph a character, from left to right.
std::vector<Glyph> laid_out(const std::u32string& characters, const std::vector<FT_Face>& faces) {
  std::vector<Glyph> glyphs;
  for (size_t i = 0; i < faces.size(); ++i) {
    const FT_UInt index = FT_Get_Char_Index(faces[i], characters[i]);
    if (FT_Load_Glyph(faces[i], index, hinting) == 0)
      glyphs.push_back({faces[i], index, 0, 0, static_cast<int>((faces[i]->glyph->advance.x + 32) >> 6)});
  }
  return glyphs;
}

#endif

}  // namespace

std::optional<LetteredLine> by_fonts(const std::u32string& characters, int height) {
  static Fonts fonts;
  const int pixels = 2 * height / 3, baseline = 3 * height / 4 - 1;
  std::u32string text;
  std::vector<FT_Face> faces;  // of each character of the text
  for (char32_t c : characters) {
    FT_Face face = fonts.face_with(c, pixels);
    if (face == nullptr) face = fonts.face_with(c = U'?', pixels);
    if (face == nullptr) return std::nullopt;
    text += c;
    faces.push_back(face);
  }
  LetteredLine line{height, 0, {}};
  const std::vector<Glyph> glyphs = laid_out(text, faces);
  for (const Glyph& glyph : glyphs) line.width += glyph.advance;
  line.coverage.resize(static_cast<size_t>(line.height) * static_cast<size_t>(line.width));
  int pen = 0;
  for (const Glyph& glyph : glyphs) {
    if (FT_Load_Glyph(glyph.face, glyph.index, FT_LOAD_RENDER | hinting) == 0)
      draw(*glyph.face->glyph, pen + glyph.right, baseline - glyph.up, line);
    pen += glyph.advance;
  }
  return line;
}

}  // namespace tessera

#else

namespace tessera {

std::optional<LetteredLine> by_fonts(const std::u32string&, int) { return std::nullopt; }

}  // namespace tessera

#endif
